package redisstore

// Level says what a Finding means.
type Level string

// The levels.
const (
	LevelOK   Level = "ok"   // as it should be
	LevelWarn Level = "warn" // it works, and a fault of the server will cost more than it need
	LevelFail Level = "fail" // it does not work, or leases and records are not safe
	LevelSkip Level = "skip" // not known: the user may not look
)

// Finding is what Check has seen of one thing.
type Finding struct {
	Check  string // what was looked at, in one word: version, role, replicas, persistence, memory, clock, latency, permissions, writing, acknowledgement or data
	Level  Level
	Found  string // what was seen
	Remedy string // what to do about it; "" where nothing is to be done
}

func (f Finding) ok(found string) Finding           { return f.with(LevelOK, found, "") }
func (f Finding) warn(found, remedy string) Finding { return f.with(LevelWarn, found, remedy) }
func (f Finding) fail(found, remedy string) Finding { return f.with(LevelFail, found, remedy) }

// skip says that a command which would tell is refused.
func (f Finding) skip(command string) Finding {
	return f.with(LevelSkip, "not known: the user may not run "+command, "look with a user that may")
}

func (f Finding) with(l Level, found, remedy string) Finding {
	f.Level, f.Found, f.Remedy = l, found, remedy
	return f
}
