package redisclient

import "testing"

func TestErrorsOfServersAreClassified(t *testing.T) {
	for _, c := range []struct {
		text string
		want Class
	}{
		// As servers send them.
		{"READONLY You can't write against a read only replica.", Transient},
		{"LOADING Redis is loading the dataset in memory", Transient},
		{"LOADING Valkey is loading the dataset in memory", Transient},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", Transient},
		{"CLUSTERDOWN The cluster is down", Transient},
		{"CLUSTERDOWN Hash slot not served", Transient},
		{"TRYAGAIN Multiple keys request during rehashing of slot", Transient},
		{"MOVED 3999 127.0.0.1:6381", Transient},
		{"ASK 3999 127.0.0.1:6381", Transient},
		{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", Transient},
		{"UNKILLABLE Sorry the script already executed write commands against the dataset.", Transient},
		{"NOREPLICAS Not enough good replicas to write.", Transient},
		{"NOSCRIPT No matching script. Please use EVAL.", Transient},
		{"ERR max number of clients reached", Transient},
		{"OOM command not allowed when used memory > 'maxmemory'.", Alarming},
		{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", Alarming},
		{"MISCONF Errors writing to the AOF file: No space left on device", Alarming},
		{"NOAUTH Authentication required.", Permanent},
		{"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used.", Permanent},
		{"ERR Protocol error: unauthenticated multibulk length", Permanent},
		{"WRONGPASS invalid username-password pair or user is disabled.", Permanent},
		{"ERR invalid password", Permanent},
		{"ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?", Permanent},
		{"ERR Client sent AUTH, but no password is set", Permanent},
		{"NOPERM User leader has no permissions to run the 'evalsha' command", Permanent},
		{"NOPERM this user has no permissions to access one of the keys used as arguments", Permanent},
		{"NOPERM No permissions to access a channel", Permanent},
		{"NOPERM this user has no permissions to run the 'select' command", Permanent},
		{"CROSSSLOT Keys in request don't hash to the same slot", Permanent},
		{"WRONGTYPE Operation against a key holding the wrong kind of value", Permanent},
		{"ERR unknown command 'EVALSHA', with args beginning with: 'abc' '4' ", Permanent},
		{"ERR unknown command `EVALSHA`, with args beginning with: `abc`, `4`, ", Permanent},
		{"ERR DB index is out of range", Permanent},
		{"ERR SELECT is not allowed in cluster mode", Permanent},
		// In scripts, Redis 7.
		{"READONLY You can't write against a read only replica. script: 5f1, on @user_script:30.", Transient},
		{"OOM command not allowed when used memory > 'maxmemory'. script: 5f1, on @user_script:41.", Alarming},
		{"ERR Unknown Redis command called from script script: 5f1, on @user_script:1.", Permanent},
		{"NOPERM The user executing the script can't run this command or subcommand script: 5f1, on @user_script:1.", Permanent},
		{"ERR The user executing the script can't run this command or subcommand script: 5f1, on @user_script:1.", Permanent},
		{"WRONGTYPE singleton:{g}:lease holds a list, not a string", Permanent},
		{"NOTOKEN singleton:{g}:fence leaves no token below 2^53", Permanent},
		// In scripts, Redis 6.2.
		{"ERR Error running script (call to f_5f1): @user_script:30: @user_script: 30: -READONLY You can't write against a read only replica. ", Transient},
		{"ERR Error running script (call to f_5f1): @user_script:41: @user_script: 41: -OOM command not allowed when used memory > 'maxmemory'. ", Alarming},
		{"ERR Error running script (call to f_5f1): @user_script:1: -NOREPLICAS Not enough good replicas to write. ", Transient},
		{"ERR Error running script (call to f_5f1): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value ", Permanent},
		{"ERR Error running script (call to f_5f1): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand", Permanent},
		{"ERR Error running script (call to f_5f1): @user_script:1: @user_script: 1: Unknown Redis command called from Lua script", Permanent},
		// From the client.
		{"context deadline exceeded", Transient},
		{"read tcp 127.0.0.1:1->127.0.0.1:2: i/o timeout", Transient},
		{"dial tcp 127.0.0.1:2: connect: connection refused", Transient},
		{"EOF", Transient},
		{"redis: connection pool timeout", Transient},
		// Words inside words and names are none.
		{"ERR something about BUSYGROUP and singleton:{NOAUTH}:lease", Transient},
		{"ERR singleton:{WRONGTYPE}:lease", Transient},
	} {
		got, remedy := Classify(c.text)
		if got != c.want {
			t.Errorf("%s: class %d, want %d", c.text, got, c.want)
		}
		if (got == Transient) != (remedy == "") {
			t.Errorf("%s: remedy %q", c.text, remedy)
		}
	}
}

// TestRemedyOfAUserWhoMayNotSelect is one that doctor cannot name, because it is not connected either.
func TestRemedyOfAUserWhoMayNotSelect(t *testing.T) {
	const want = "the Redis user may not choose a database: grant +select, or use database 0"
	for _, text := range []string{
		"failed to initialize connection options: NOPERM this user has no permissions to run the 'select' command",
		"NOPERM this user has no permissions to run the 'select' command or its subcommand",
	} {
		if _, got := Classify(text); got != want {
			t.Errorf("%s: got %q", text, got)
		}
	}
}
