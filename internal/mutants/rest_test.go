package mutants

// scheduleMutants are faults of cron expressions.
var scheduleMutants = []mutant{
	{
		name: "fixed-job-fires-twice", rule: "a job of a fixed time runs once where the clock is put back over it",
		file:   "schedule/zone.go",
		old:    "wall = max(wall, before+s.offset)",
		new:    "wall = max(wall, wall+0*before)",
		killer: test("./schedule", "TestVectors"), quick: true,
	},
	{
		name: "fixed-job-lost-in-a-gap", rule: "a job of a fixed time that the clock skips runs right after the gap",
		file:   "schedule/zone.go",
		old:    "if at := max(wall-s.offset, from); at < s.end {",
		new:    "if at := wall - s.offset; at >= from && at < s.end {",
		killer: test("./schedule", "TestVectors"),
	},
	{
		name: "every-from-now", rule: "the ticks of @every are multiples of it since the epoch, on all replicas",
		file:   "schedule/expr.go",
		old:    "(floorDiv(sec, e.every)+1)*e.every, true)",
		new:    "sec+e.every, true)",
		killer: test("./schedule", "TestB31EveryHangsOnTheEpoch"),
	},
	{
		name: "both-day-fields", rule: "day of month and day of week are alternatives unless one starts with a star",
		file:   "schedule/fields.go",
		old:    "if f.either {",
		new:    "if f.either && year < 0 {",
		killer: test("./schedule", "TestVectors|TestFieldsName"),
	},
}

// childMutants are faults of the processes that jobs run.
var childMutants = []mutant{
	{
		name: "only-the-child-is-signalled", rule: "signals reach the whole group of a command",
		file:   "internal/procgroup/group_linux.go",
		old:    "unix.PidfdSendSignal(g.pidfd, sig, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)",
		new:    "unix.PidfdSendSignal(g.pidfd, sig, nil, 0)",
		killer: test("./internal/procgroup", "TestTermReachesTheWholeGroup"),
	},
	{
		name: "no-kill", rule: "what ignores SIGTERM is killed",
		file:   "internal/procgroup/child.go",
		old:    "_ = c.group.signal(syscall.SIGKILL)\n\t\t\tif !c.running()",
		new:    "if !c.running()",
		killer: test("./internal/procgroup", "TestGrandchildThatIgnoresTermIsKilled"),
	},
	{
		name: "dead-session-waits-for-the-grace", rule: "a command whose session is over is killed at once",
		file:   "internal/procgroup/child.go",
		old:    "alive != nil && !alive()",
		new:    "alive != nil && alive == nil",
		killer: test("./internal/procgroup", "TestDeadSessionKillsAtOnce"),
	},
	{
		name: "command-outlives-its-parent", rule: "a command dies with the process that started it",
		file:   "internal/procgroup/group_linux.go",
		old:    "Pdeathsig: syscall.SIGKILL, ",
		new:    "",
		killer: test("./internal/procgroup", "TestCommandDiesWithAParentThatIsKilled"),
	},
}
