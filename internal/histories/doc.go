// Package histories records what several clients of the store ask and are answered while their network breaks, and lets
// a checker (porcupine) decide whether one lease with one fenced record could have given these answers.
//
// # What runs
//
// For each seed, a Redis or a ZooKeeper of its own and two to five clients. Each client has a store and a proxy of its
// own, and does as a bad replica might: it campaigns, renews, commits, reads, releases, repeats what got no answer, gives
// up, and goes on with a lease that is long over. Meanwhile requests and replies are lost, delayed, cut, or held and
// delivered after later ones; clients stand still for longer than their lease; and the server is frozen. A call is
// written down with the instant before it was made and the instant after it was answered, all by one monotonic clock. A
// call without an answer is unknown: it may take effect once, at any time after it was made, or never.
//
// # What is checked
//
// That an order of all calls exists which agrees with the real one (a call that was answered before another was made
// comes first) and in which each answer is that of this object:
//
//	owner     the campaign that holds the lease, or none. The lease of a campaign may end by itself from TTL after the
//	          last extension that counted, and has ended by itself a moment later; that is known to within slack, because
//	          each call bounds the instant at which it took effect. A released campaign is never granted anything again
//	token     grows with each grant and with nothing else; a repetition of the owner's acquire gets the same
//	position  the token and number of the last commit: the next of the owner is applied, the last is answered again,
//	          an older one is stale, one beyond the next is a gap, one of anybody else is lost
//	value     the one record; whoever reads it gets what the last applied commit has put there
//
// A leader that others see under a token which nobody was told is taken for a late grant of an unanswered acquire; when
// such a lease ends is not checked. Of each history a few copies with one wrong answer are judged, too: the checker must
// refuse them.
//
// A lock without fencing is this object with writes that nobody checks. It is not linearizable, and a test shows so: the
// same pause at the same moment, once with a plain write and once with a commit.
//
// ZooKeeper keeps the lease of a client that it cannot hear until its session ends, so that only the earliest end of a lease
// is checked there. The server's wall clock must run at the rate of the monotonic clock, to within 1 %, and not step.
//
// # How to run it again
//
//	go test ./internal/histories -run Fenced -seeds 50 -for 20s -timeout 60m      seeds 1 to 50
//	go test ./internal/histories -run Fenced -seed 17 -seeds 1 -for 20s -artifacts seed 17 alone
//
// A seed decides what each client draws and which faults come in which order. The network, the processes and the
// scheduler are real, so that a seed steers a run and does not replay it: one that fails may have to be run a few times.
// What was recorded is therefore kept: a failing seed prints the calls around the first one that has no place, and leaves
// history.txt (all of them) and history.html (the checker's picture) in the directory of artifacts.
package histories
