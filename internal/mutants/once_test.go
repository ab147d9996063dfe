package mutants

// onceMutants are faults of work that many machines start and one does.
var onceMutants = []mutant{
	{
		name: "once-by-newest-end", rule: "the newest claim counts, not the newest end",
		file:   "scheduler/once.go",
		old:    "last := j.record.Once\n",
		new:    "last := j.record.Once\n\t\tif l := j.record.Last; l != nil {\n\t\t\tlast.At = l.Started\n\t\t}\n",
		killer: test("./scheduler", "TestOnceCountsFromTheNewestClaim"),
	},
	{
		name: "once-forgets-its-own", rule: "who finds its own claim has claimed",
		file:   "scheduler/once.go",
		old:    "case j.record.Once.Replica == p.id:",
		new:    `case j.record.Once.Replica == "":`,
		killer: test("./scheduler", "TestOnceFindsItsOwnClaim"),
	},
	{
		name: "once-by-the-wall-clock", rule: "a claim is judged by the store's clock, however it was set",
		file:   "scheduler/once.go",
		old:    "ago.Abs() < p.Per/2",
		new:    "ago < p.Per/2",
		killer: test("./scheduler", "TestOnceAfterTheStoresClockWasSetBack"),
	},
	{
		name: "once-lets-its-session-go", rule: "a run that goes on is not taken for one whose process has died",
		file:   "scheduler/once.go",
		old:    "keeper.Go(func() { p.keep(keeping) })",
		new:    "keeper.Go(func() { <-keeping.Done() })",
		killer: test("./scheduler", "TestOnceKeepsItsSessionWhileItRuns"),
	},
	{
		name: "once-without-a-lease", rule: "the ledger is read under the lease under which the claim is made",
		file:   "scheduler/turn.go",
		old:    "err = f(ctx, t)\n\t\t\tp.release(ctx, t.lease)",
		new:    "p.release(ctx, t.lease)\n\t\t\terr = f(ctx, t)",
		killer: test("./scheduler", "TestOnceIsDoneByOneOfMany"),
	},
	{
		name: "once-beside-a-leader", rule: "a group in which somebody leads is refused",
		file:   "scheduler/turn.go",
		old:    "held.Leader.Remaining > 2*onceLease || time.Since(since) > max(onceLease, holder.Remaining)+onceAttempt",
		new:    "time.Since(since) > time.Hour",
		killer: test("./scheduler", "TestOnceSaysWhyItWasNotDone"),
	},
	{
		name: "dead-once-is-silent", rule: "a run whose process has died is interrupted",
		file:   "scheduler/once.go",
		old:    "\tp.closeDead(j, t)\n",
		new:    "",
		killer: test("./scheduler", "TestOnceThatDiesIsInterruptedAndWaitedFor"),
	},
}
