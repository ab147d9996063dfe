package mutants

// zookeeperStoreMutants are faults of the ZooKeeper store that only a real server shows.
var zookeeperStoreMutants = []mutant{
	{
		name: "zookeeper-whole-session-granted", rule: "a grant is two thirds of the ZooKeeper session at most",
		file:   "store/zkstore/link.go",
		old:    "(s.timeout * 2 / 3)",
		new:    "s.timeout",
		killer: test("./store/zkstore", "TestALeaseLastsTwoThirdsOfASession"),
	},
	{
		name: "zookeeper-foreign-session-kept", rule: "a session lives on the ZooKeeper session that its refreshes keep alive",
		file:   "store/zkstore/sessions.go",
		old:    "case err == nil && stat.EphemeralOwner == l.session().id:",
		new:    "case err == nil && stat != nil:",
		killer: test("./store/zkstore", "TestAZnodeOfAnotherSessionIsTakenOver"),
	},
	{
		name: "zookeeper-close-ends-what-is-held", rule: "what was not given up lapses after Close",
		file:   "store/zkstore/store.go",
		old:    "l.close(lapse)",
		new:    "l.close(lapse && s.log == nil)",
		killer: test("./store/zkstore", "TestCloseLetsLapseWhatWasNotGivenUp"),
	},
	{
		name: "zookeeper-lost-session-revived", rule: "a session that ended with its ZooKeeper session is not revived",
		file:   "store/zkstore/sessions.go",
		old:    "case !errors.Is(err, zk.ErrNoNode):\n\t\t\treturn nil, err\n\t\tcase !start:",
		new:    "case !errors.Is(err, zk.ErrNoNode):\n\t\t\treturn nil, err\n\t\tcase !start && r.ID == \"\":",
		killer: test("./store/zkstore", "TestASilentlyOpenedSessionKeepsNothing"),
	},
	{
		name: "zookeeper-renews-by-a-read", rule: "a lease is renewed by a write, which a server without a majority cannot acknowledge",
		file:   "store/zkstore/leases.go",
		old:    "stats, err := multi(ctx, l, parts...)\n\tif f, ok := errors.AsType[*failed](err); ok && (errors.Is(f, zk.ErrNoNode) || errors.Is(f, zk.ErrBadVersion)) {\n\t\tswitch",
		new:    "_, stat, err := get(ctx, l, s.sessionPath(g.name, lease.Replica))\n\tstats := []*zk.Stat{nil, nil, stat}\n\tif f, ok := errors.AsType[*failed](err); ok && (errors.Is(f, zk.ErrNoNode) || errors.Is(f, zk.ErrBadVersion)) {\n\t\tswitch",
		killer: test("./store/zkstore", "TestE2ServerThatOnlyReadsRenewsNothing"),
	},
}
