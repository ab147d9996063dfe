package mutants

// The tests that ask a model node and a real one the same, and those that let clients live on model nodes.
const (
	likeARealOne = "TestModelNodeAnswersLikeARealOne"
	ofClients    = "TestSimulationKeepsWhatWasAcknowledged"
)

// redlockStoreMutants are faults of the store on independent servers: each leaves out a rule without which a majority
// promises less than one server.
var redlockStoreMutants = []mutant{
	{
		name: "redlock-validity-from-the-reply", rule: "a majority that comes together when the lease is over is none",
		file:   "store/redlock/acquire.go",
		old:    "if over(p.began, p.claim.TTL) {",
		new:    "if over(time.Now(), p.claim.TTL) {",
		killer: test("./store/redlock", "TestAMajorityThatComesTooLateIsNone"), quick: true,
	},
	{
		name: "redlock-minority-quorum", rule: "more than half of the servers must agree",
		file:   "store/redlock/store.go",
		old:    "quorum: len(nodes)/2 + 1",
		new:    "quorum: max(1, len(nodes)/2)",
		killer: test("./store/redlock", "TestWithoutAMajorityNothingIsDone"),
	},
	{
		name: "redlock-token-without-counters", rule: "a token is above every one that a majority can have settled",
		file:   "store/redlock/acquire.go",
		old:    "token := max(counter+1, clock, p.claim.Floor+1)",
		new:    "token := max(clock, p.claim.Floor+1)",
		killer: test("./store/redlock", "TestQ2TheTokenIsAboveAllThatAMajorityCanKnow"), quick: true,
	},
	{
		name: "redlock-no-second-phase", rule: "a grant counts when a majority has taken its token",
		file:   "store/redlock/acquire.go",
		old:    "case !v.value.ok:",
		new:    "case !v.value.ok && v.err != nil:",
		killer: test("./store/redlock", "TestQ2AGrantWhoseTokenAMajorityRefusesIsWithdrawnAndTriedAgain"),
	},
	{
		name: "redlock-settles-below-the-counter", rule: "a server takes no token below one that it has taken",
		file:   "store/redlock/lua/settle.lua",
		old:    "if counter > wanted or counter == wanted",
		new:    "if counter == wanted",
		killer: test("./store/redlock", likeARealOne),
	},
	{
		name: "redlock-settles-another-attempt", rule: "a token goes to the attempt that it was made for",
		file:   "store/redlock/lua/settle.lua",
		old:    " or attempt ~= ARGV[3] then",
		new:    " then",
		killer: test("./store/redlock", likeARealOne),
	},
	{
		name: "redlock-released-nonce-used-again", rule: "a nonce that was released is granted nothing, however late it comes",
		file:   "store/redlock/lua/acquire.lua",
		old:    "is_refused('released', nonce) or ",
		new:    "",
		killer: test("./store/redlock", likeARealOne),
	},
	{
		name: "redlock-one-grant-cuts-the-session", rule: "one server alone grants nothing, and cuts no session",
		file:   "store/redlock/lua/acquire.lua",
		old:    "math.max(living or 0, till), about",
		new:    "till, about",
		killer: test("./store/redlock", likeARealOne),
	},
	{
		name: "redlock-withdrawn-from-voters-only", rule: "a failed attempt is taken back everywhere, also where nobody has answered",
		file:   "store/redlock/acquire.go",
		old:    "changes: true}, func(ctx context.Context, n node) (plain, error) {\n\t\tif p.relied",
		new:    "changes: true, to: p.voters.links}, func(ctx context.Context, n node) (plain, error) {\n\t\tif p.relied",
		killer: test("./store/redlock", "TestAcquireByWhatNodesAnswer"),
	},
	{
		name: "redlock-not-repaired-in-need", rule: "a server that does not hold the lease is given it also when too few have renewed it",
		file:   "store/redlock/leases.go",
		old:    "\t\ts.repair(ctx, l, s.known(l), v)\n\t}\n\treturn store.Grant{}, done.short",
		new:    "\t\t_ = v\n\t}\n\treturn store.Grant{}, done.short",
		killer: test("./store/redlock", "TestRenewByWhatNodesAnswer"),
	},
	{
		name: "redlock-repaired-server-counts", rule: "a server that a renewal repairs does not count for it",
		file:   "store/redlock/leases.go",
		old:    "\t\treturn n.renew(ctx, l)\n",
		new:    "\t\tgot, err := n.renew(ctx, l)\n\t\tif err == nil && got.Outcome == renewLost {\n\t\t\treturn n.repair(ctx, l, nil)\n\t\t}\n\t\treturn got, err\n",
		killer: test("./store/redlock", "TestRenewByWhatNodesAnswer"),
	},
	{
		name: "redlock-repairs-below-the-counter", rule: "a late repair puts no lease where a later one was",
		file:   "store/redlock/lua/repair.lua",
		old:    "if counter > tonumber(ARGV[1]) then",
		new:    "if counter < 0 then",
		killer: test("./store/redlock", likeARealOne),
	},
	{
		name: "redlock-no-delayed-restart", rule: "a server that has restarted has no vote until what it may have forgotten is over",
		file:   "store/redlock/quorum.go",
		old:    "if durable || s.Up >= longest {",
		new:    "if durable || s.Up >= 0 {",
		killer: test("./store/redlock", "TestQ3ANodeThatHasRestartedHasNoVoteUntilALeaseIsOver"), quick: true,
	},
	{
		name: "redlock-one-server-counted-twice", rule: "a server under two addresses is refused",
		file:   "store/redlock/quorum.go",
		old:    `i >= 0 && run != ""`,
		new:    `i > len(c.runs) && run != ""`,
		killer: test("./store/redlock", "TestQ7OneServerUnderTwoNamesIsRefusedAndNamed"),
	},
	{
		name: "redlock-commit-at-any-state", rule: "a server takes a commit only on the state that the commit was made for",
		file:   "store/redlock/lua/write.lua",
		old:    "elseif head ~= ARGV[4] then",
		new:    "elseif head == '' then",
		killer: test("./store/redlock", likeARealOne),
	},
	{
		name: "redlock-marker-not-written", rule: "a server notes in which of its runs it got the whole state",
		file:   "store/redlock/lua/install.lua",
		old:    "ARGV[4], 'marker', this_run())",
		new:    "ARGV[4])",
		killer: test("./store/redlock", likeARealOne),
	},
	{
		name: "redlock-no-whole-state", rule: "a server that has missed a commit is given the whole state",
		file:   "store/redlock/transfer.go",
		old:    "\tcomplete := false\n",
		new:    "\tcomplete := false\n\tif at.At.Token > 0 {\n\t\tt.end(to)\n\t\treturn written{}, errors.New(\"nothing is copied\")\n\t}\n",
		killer: test("./store/redlock", "TestQ5AServerThatWasAwayIsGivenALargeStateWhileCommitsGoOn"),
	},
	{
		name: "redlock-takeover-from-any-server", rule: "a new leader reads only servers that have granted its lease",
		file:   "store/redlock/restore.go",
		old:    "if !v.value.Held {",
		new:    "if !v.value.Held && v.value.Head == (head{}) {",
		killer: test("./store/redlock", "TestQ5ATakeoverWritesBackTheNewestStateOfServersThatGrantedAndLostNothing"),
	},
	{
		name: "redlock-takeover-not-written-back", rule: "what a new leader has found is on a majority before it is used",
		file:   "store/redlock/restore.go",
		old:    "err = s.move(ctx, t, write{Lease: t.lease, From: newest, To: to}, nil)",
		new:    "err = ctx.Err()",
		killer: test("./store/redlock", "TestQ5ATakeoverWritesBackTheNewestStateOfServersThatGrantedAndLostNothing"),
	},
	{
		name: "redlock-doubtful-server-counts", rule: "a server that may have lost records counts for none",
		file:   "store/redlock/restore.go",
		old:    "case !durable && r.Marker != r.Run:",
		new:    "case !durable && r.Marker == r.Run+r.Run:",
		killer: test("./store/redlock", "TestQ5ATakeoverWritesBackTheNewestStateOfServersThatGrantedAndLostNothing"),
	},
	{
		name: "redlock-two-states-under-one-token", rule: "a term writes back nothing else than what it has found first",
		file:   "store/redlock/restore.go",
		old:    "t.chosen != nil && t.chosen.From != newest",
		new:    "t.chosen != nil && t.chosen.From.At.Token > newest.At.Token",
		killer: test("./store/redlock", "TestQ5ATermWritesBackNothingElseThanWhatItFoundFirst"), quick: true,
	},
	{
		name: "redlock-copy-outlives-a-restart", rule: "a copy that was begun before a restart is not completed after it",
		file:   "store/redlock/lua/install.lua",
		old:    "redis.call('SISMEMBER', KEYS[9], begun()) == 0",
		new:    "redis.call('EXISTS', KEYS[9]) == 0",
		killer: test("./store/redlock", "TestQ5WhatWasPutAsideForACopyEndsWithTheServer"), quick: true,
	},
	{
		name: "redlock-copy-of-what-comes-late", rule: "a copy whose source has gone on by a step that was not recorded is none",
		file:   "store/redlock/transfer.go",
		old:    "if c.newest.compare(to) > 0 {",
		new:    "if c.newest.compare(to) > 1 {",
		killer: test("./store/redlock", "TestQ5ACopyIsNoStateThatItsSourceHasPassed"),
	},
	{
		name: "redlock-term-without-a-needed-server", rule: "a term that needs the records of a server with a higher token ends",
		file:   "store/redlock/restore.go",
		old:    "case len(sure.links)+outrun >= s.quorum:",
		new:    "case len(sure.links) >= s.quorum:",
		killer: test("./store/redlock", "TestQ6ATermThatNeedsAServerWithAHigherTokenEnds"),
	},
	{
		name: "redlock-split-votes-wait", rule: "who has too few votes does not keep them until a silent server answers",
		file:   "store/redlock/acquire.go",
		old:    "if patience <= 0 {",
		new:    "if patience = callLimit; patience <= 0 {",
		killer: test("./store/redlock", "TestB20SplitVotesDoNotWaitForASilentNode"),
	},
	{
		name: "redlock-messages-of-one-server", rule: "messages are those of a majority together",
		file:   "store/redlock/read.go",
		old:    "\t\treturn pages\n",
		new:    "\t\treturn pages[:1]\n",
		killer: test("./store/redlock", ofClients, "-tags", "long"),
	},
}
