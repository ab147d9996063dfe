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

// childMutants are faults of the processes that jobs run.
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
	{
		name: "no-kill-after-term", rule: "what ignores SIGTERM gets SIGKILL",
		file:   "internal/procgroup/child.go",
		old:    "_ = c.group.signal(syscall.SIGKILL)",
		new:    "_ = c.group.signal(syscall.SIGTERM)",
		killer: test("./internal/procgroup", "TestGrandchildThatIgnoresTermIsKilled"),
	},
	{
		name: "dead-session-waits", rule: "a session that is over waits for no grace",
		file:   "internal/procgroup/child.go",
		old:    "(!now.Before(killAt) || alive != nil && !alive())",
		new:    "!now.Before(killAt)",
		killer: test("./internal/procgroup", "TestDeadSessionKillsAtOnce"),
	},
	{
		name: "no-death-signal", rule: "on Linux the kernel kills a command when its parent dies",
		file:   "internal/procgroup/group_linux.go",
		old:    "Setpgid: true, Pdeathsig: syscall.SIGKILL, PidFD",
		new:    "Setpgid: true, PidFD",
		killer: test("./internal/procgroup", "TestCommandDiesWithAParentThatIsKilled"),
	},
	{
		name: "unguarded", rule: "the guardian kills what is left of all commands",
		file:   "internal/procgroup/guard.go",
		old:    "for _, g := range groups {",
		new:    "for _, g := range map[int]*group{} {",
		killer: test("./internal/procgroup", "TestB70WholeGroupDiesWithAParentThatIsKilled"),
	},
	{
		name: "guardian-keeps-groups", rule: "the guardian is told of the end of each command",
		file:   "internal/procgroup/guardian.go",
		old:    "g.tell(\"-\" + strconv.Itoa(pgid))",
		new:    "_ = pgid",
		killer: test("./internal/procgroup", "TestGuardianKillsWhatIsLeftAndNothingElse"),
	},
	{
		name: "guardian-is-polite", rule: "the guardian ends with its pipe alone",
		file:   "internal/procgroup/guard.go",
		old:    "signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, ",
		new:    "signal.Ignore(syscall.SIGTERM, ",
		killer: test("./internal/procgroup", "TestGuardianSurvivesTheSignalsOfATerminalAndAServiceManager"),
	},
	{
		name: "guardian-starts-blank", rule: "the guardian that follows another knows the groups",
		file:   "internal/procgroup/guardian.go",
		old:    "for pgid := range g.groups {",
		new:    "for pgid := range map[int]bool{} {",
		killer: test("./internal/procgroup", "TestGuardianThatEndsIsReplacedByOneThatKnowsTheGroups/killed"),
	},
	{
		name: "forks-are-not-told", rule: "the guardian knows of a command before it is forked",
		file:   "internal/procgroup/guardian.go",
		old:    "\tg.tell(\"?\" + mark)\n\treturn mark",
		new:    "\treturn mark",
		killer: test("./internal/procgroup", "TestGuardianIsToldBeforeAndAfterTheFork"),
	},
	{
		name: "marks-mean-nothing", rule: "what a command has started before its group was known is found by its mark",
		file:   "internal/procgroup/guard.go",
		old:    "for _, pgid := range marked(marks) {",
		new:    "for _, pgid := range marked(nil) {",
		killer: test("./internal/procgroup", "TestGuardianKillsWhatACommandHasStartedBeforeItsGroupWasKnown"),
	},
	{
		name: "guardian-holds-files", rule: "the guardian holds no files of others",
		file:   "internal/procgroup/guard.go",
		old:    "flags&unix.FD_CLOEXEC == 0 {",
		new:    "flags&unix.FD_CLOEXEC != 0 && fd > 1<<20 {",
		killer: test("./internal/procgroup", "TestGuardianHoldsNoFilesOfOthers"),
	},
	{
		name: "others-are-killed", rule: "a group is named by its leader's descriptor only where that is the parent's child",
		file:   "internal/procgroup/group_linux.go",
		old:    "string(stat[1]) != strconv.Itoa(parent)",
		new:    "stat == nil",
		killer: test("./internal/procgroup", "TestGuardianNamesGroupsByTheirLeader"),
	},
	{
		name: "statuses-are-stolen", rule: "orphans are reaped, and no command that somebody waits for",
		file:   "internal/procgroup/orphans.go",
		old:    "if own.pids[pid] {",
		new:    "if own.pids[-pid] {",
		killer: test("./internal/procgroup", "TestReapOrphansTakesOrphansAlone"),
	},
}
