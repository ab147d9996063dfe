package mutants

// etcdStoreMutants are faults of the etcd store that only a real server shows.
var etcdStoreMutants = []mutant{
	{
		name: "etcd-renews-the-etcd-lease-alone", rule: "a renewal proves that the key is ours, not only that its etcd lease lives",
		file:   "store/etcdstore/leases.go",
		old:    "case held != grantOf(lease):",
		new:    "case !seen[0].exists():",
		killer: test("./store/etcdstore", "TestARenewalProvesTheKey"),
	},
	{
		name: "etcd-lease-kept-alive", rule: "a renewal relies on a new etcd lease: a server that has led ends those that were kept alive meanwhile",
		file:   "store/etcdstore/leases.go",
		old:    "if full(err) && seen[0].lease == seen[1].lease",
		new:    "if seen[0].lease == seen[1].lease",
		killer: test("./store/etcdstore", "TestEachRefreshHangsOnANewEtcdLease"),
	},
	{
		name: "etcd-session-shortened", rule: "a shorter refresh leaves a session as long as it was",
		file:   "store/etcdstore/sessions.go",
		old:    "wanted = max(wanted, left+1)",
		new:    "_ = left",
		killer: test("./store/etcdstore", "TestEachRefreshHangsOnANewEtcdLease"),
	},
	{
		name: "etcd-revision-as-token", rule: "a token is no less than the candidate's clock: revisions begin anew with new data",
		file:   "store/etcdstore/leases.go",
		old:    "max(fence.Token+1, uint64(now.UnixMicro()), c.Floor+1)",
		new:    "max(fence.Token+1, uint64(seen[0].revision), c.Floor+1)",
		killer: test("./store/etcdstore", "TestB57AServerThatHasLostItsDataIsANewOne"),
	},
	{
		name: "etcd-commit-without-lease", rule: "a commit is guarded by the lease",
		file:   "store/etcdstore/ledger.go",
		old:    "[]clientv3.Cmp{s.stands(lease), expected}",
		new:    "[]clientv3.Cmp{expected}",
		killer: test("./store/etcdstore", "TestContract/commits"),
	},
	{
		name: "etcd-commit-without-position", rule: "a commit is guarded by the ledger's position",
		file:   "store/etcdstore/ledger.go",
		old:    "[]clientv3.Cmp{s.stands(lease), expected}",
		new:    "append([]clientv3.Cmp{s.stands(lease)}, expected)[:1]",
		killer: test("./store/etcdstore", "TestContract/commits"),
	},
	{
		name: "etcd-grant-without-fence", rule: "a grant and a release are guarded by the fence: a late acquire takes the lease for nobody",
		file:   "store/etcdstore/leases.go",
		old:    "err = l.change(ctx, []clientv3.Cmp{seen[0].unchanged(), seen[1].unchanged(), seen[2].unchanged()},",
		new:    "err = l.change(ctx, []clientv3.Cmp{seen[2].unchanged()},",
		killer: test("./store/etcdstore", "TestContract/leases"),
	},
	{
		name: "etcd-compacted-watch-forgotten", rule: "a watch that the servers end because of a compaction is asked for again",
		file:   "store/etcdstore/watch.go",
		old:    "e.ended[name] = time.Now()\n\t\tif answer.CompactRevision == 0 {",
		new:    "if answer.CompactRevision == 0 {",
		killer: test("./store/etcdstore", "TestAWatchThatHasFallenBehindACompactionIsAskedForAgain"),
	},
	{
		name: "etcd-hung-endpoint-kept", rule: "an endpoint that leaves a call without an answer is left for the next one",
		file:   "store/etcdstore/errors.go",
		old:    "if errors.Is(err, context.DeadlineExceeded) {\n\t\treturn true\n\t}",
		new:    "if errors.Is(err, context.DeadlineExceeded) {\n\t\treturn false\n\t}",
		killer: test("./store/etcdstore", "TestAHungEndpointIsLeftForTheNext"),
	},
	{
		name: "etcd-hung-endpoint-spoken-for", rule: "what an endpoint answered a while ago does not speak for one that hangs",
		file:   "store/etcdstore/link.go",
		old:    "l.heard.After(u.sent) && time.Since(l.heard) < patience/2",
		new:    "l.heard.After(u.sent)",
		killer: test("./store/etcdstore", "TestAnEndpointThatAnswersNobodyAnyMoreIsLeft"),
	},
	{
		name: "etcd-session-revived", rule: "a session that has ended is not revived",
		file:   "store/etcdstore/sessions.go",
		old:    "case !session.exists() && !start:",
		new:    "case !session.exists() && !start && r.ID == \"\":",
		killer: test("./store/etcdstore", "TestWhatHasLapsedIsNotRevived"),
	},
	{
		name: "etcd-read-without-lease", rule: "a leader's reads are guarded by its lease",
		file:   "store/etcdstore/read.go",
		old:    "p.guards = []clientv3.Cmp{s.stands(*lease)}",
		new:    "p.guards = nil",
		killer: test("./store/etcdstore", "TestContract/reads"),
	},
}
