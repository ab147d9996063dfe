package mutants

// scheduleMutants are faults of cron expressions.
var scheduleMutants = []mutant{
	{
		name: "fixed-job-fires-twice", rule: "a job of a fixed time runs once where the clock is put back over it",
		file:   "schedule/zone.go",
		old:    "wall = max(wall, before+s.offset)",
		new:    "wall = max(wall, wall+0*before)",
		killer: test("./schedule", "TestAgainstOracle"), quick: true,
	},
	{
		name: "fixed-job-too-early-at-a-gap", rule: "a job of a fixed time that the clock skips runs right after the gap",
		file:   "schedule/zone.go",
		old:    "if at := max(wall-s.offset, from); at < s.end {",
		new:    "if at := wall - s.offset; at < s.end {",
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

// childMutants are faults of the processes that jobs run. Those that leave a process alive for good are not here: their tests
// would wait for it.
var childMutants = []mutant{
	{
		name: "only-the-child-is-signalled", rule: "signals reach the whole group of a command",
		file:   "internal/procgroup/group_linux.go",
		old:    "unix.PidfdSendSignal(g.pidfd, sig, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)",
		new:    "unix.PidfdSendSignal(g.pidfd, sig, nil, 0)",
		killer: test("./internal/procgroup", "TestBackgroundChildrenEndWithTheCommand/obedient"),
	},
	{
		name: "background-children-go-on", rule: "a command has ended when its whole group has",
		file:   "internal/procgroup/child.go",
		old:    "return !c.running() && c.group.gone()",
		new:    "return !c.running()",
		killer: test("./internal/procgroup", "TestBackgroundChildrenEndWithTheCommand/obedient"),
	},
}
