// Package scheduler runs cron jobs on the leader of a group, each scheduled tick once.
//
// Every replica adds the same jobs and calls Run. One of them leads (package election); its scheduler claims each tick that
// falls due in the ledger, a set of records in the same store as the lease, and starts it once the claim is there. When
// leadership changes, the new leader reads the ledger and goes on: it knows which ticks were dealt with, which runs are
// still open on other replicas, and which were cut short.
//
// # Promises
//
// All of them hold as long as the store keeps what it acknowledged; "Data loss" below says what is done when it does not.
//
//   - S1 A tick starts only after its claim is in the store. The store accepts a commit only from the holder of the lease
//     and only in the order in which the holder made it, in one atomic step with the check; a holder claims first
//     attempts only beyond the watermarks that it has read under its own lease. No attempt is claimed twice, whatever the
//     clocks, pauses and partitions.
//   - S2 No tick is lost silently. Each attempt ends as exactly one of succeeded, failed, timed out, cancelled,
//     interrupted or not started; each tick without an attempt is skipped with a reason: overlap, late, cap, redefined,
//     unowned, paused, reset, or restored. History says which. Consecutive skips of one job for one reason are one entry.
//   - S3 An interrupted run is not run again by default; with InterruptRerun it is, as the next attempt of the same tick,
//     1 s after the first interruption and 2 s after the second, until its third interruption, within the window, and never
//     once any attempt is known to have succeeded.
//   - S4 Every run gets the tick's scheduled time, an identity for idempotency, its attempt, the reason, the fencing token,
//     Valid, and a context of its own that ends before its replica's session can.
//   - S5 Stopping hands over at once: the stopping leader starts nothing more and releases the lease; its running jobs go
//     on, up to the grace, on their replica's session, and the new leader still sees them as running.
//   - S6 A change never fires by surprise: a job that is new or resumed, or whose ticks have changed, starts from now. Only what
//     determines the ticks counts as a change: not a timeout, a policy or the spelling of an expression.
//   - S7 A leader whose scheduling loop stands still for max(2 min, 4 leases) ends its term, however well it renews.
//
// # What is not promised
//
// Exactly-once effects. A job that has done half of its work when its machine dies has done half of its work: make it
// idempotent by Run.ID, or let the resource that it writes to check Run.Token, and ask Run.Valid right before a side effect.
// One Redis primary with asynchronous replicas can forget an acknowledged claim when it fails over; where it has forgotten
// the current lease with it, a leader that comes before those who remember have told can start those ticks again. A job
// that ignores its cancelled context goes on, and only the token tells its writes from those of the rerun.
//
// # Words
//
// A tick is one scheduled instant of one job, a whole second in UTC. A job's watermark is its last tick that has been dealt
// with; it never moves back, and every move says in the same commit what became of each tick that it passes. A claim is
// the record that a leader takes a tick. A run is the execution of a tick in one or more attempts, open from its claim to
// its end: an interrupted one to the end of its session, one that waits for its next attempt until that has ended.
//
// # A run
//
//	        claim committed                    end posted or committed
//	due ────────────────────▶ claimed ─▶ started ──────────────────────▶ succeeded, cancelled
//	 │                           │          ├──────────────────────────▶ failed, timed out ──▶ next attempt, with Retry
//	 │                           │          │  its session ends
//	 │ policy                    │          └──────────────────────────▶ interrupted ──▶ next attempt, with InterruptRerun
//	 ▼                           │ its replica says that it never started it
//	skipped, with a reason       └─────────────────────────────────────▶ not started ──▶ next attempt
//
// A run lives on its replica's session, not on the lease: a replica that has lost the leadership, or stops, goes on with
// its runs and tells their ends through the inbox, a list of messages in the store that the leader reads. An end closes a
// run only if the run still has the claim that the end names; the first outcome stands, and a later one is kept as a note.
//
// # Policies
//
// Overlap says what becomes of a tick that falls due while a run of its job is open on any replica, CatchUp what becomes of
// ticks that nobody could start in time (no leader, a store that did not answer, MaxRunning reached), OnInterrupt what
// comes after an interrupted run, and Retry what comes after one that has failed or timed out. Reasons of skipped ticks: overlap (a run was open), late (CatchUp does not make it up),
// cap (older than the newest CatchUpMax), redefined (the schedule has been changed), unowned (no leader's binary had the
// job), paused, reset (by a request), restored (dealt with before the store lost the records of it).
//
// Failures and interruptions are counted apart: with Retry of 3 attempts and InterruptRerun a run has at most 3 attempts that
// fail and 3 that are interrupted, numbered through. No attempt follows one that has succeeded, was cancelled, or returned an
// error of backoff.Permanent; none starts later than Window after the tick was due; and where none follows one that has
// failed, its entry says why. What has failed and when the next attempt may start stand in the ledger: a new leader goes on
// where the last one was. A leader whose binary lacks the job does not retry it.
//
// With OverlapReplace a tick that falls due while a run of its job is open cancels it with ErrReplaced, wherever it is
// executed: the leader marks the run in the ledger, and its replica looks at the marks at least every third of its lease. The
// tick waits until the run has ended, however long a job ignores its context; of several that wait the newest starts, and the
// others are skipped (overlap). A run that is marked gets no other attempt, whatever becomes of it, and one that waits for its
// next attempt is dropped at once.
//
// Jitter delays the start of each tick by a hash of job and tick, the same on every replica, that ends before the next tick.
// The tick is still named by its scheduled instant; when it is due, late, overlapped or outside the window counts from its
// delayed start.
//
// # Requests
//
// An Inspector, in any process, posts requests into the inbox: trigger, pause, resume, cancel, resign, forget, reset. Whoever
// leads acts on each once, in the commit that takes it out of the inbox, and keeps the answer for an hour; Request.Wait
// returns it, for a trigger the last attempt of its run, whoever led meanwhile. A request that is older than half an hour by
// the store's clock is refused, and so is one from a clock that is as far ahead: a duplicate could come when nobody remembers
// any more that it was acted on. Requests of one author count in the order in which they were made: a pause that arrives
// after the resume that followed it is refused.
//
// A manual run has the ID "job@tick+request" and leaves the watermark alone, but counts for overlap like any other. A pause
// stops the ticks of a job or of all: those that fall due meanwhile are skipped. Runs that are open go on, with their further
// attempts, and a job that is paused can be triggered.
//
// # Data loss
//
// A replica that has led remembers watermarks, pauses, requests, open runs and how far the ledger had got, and for a while the ends of its own
// runs. It looks at the ledger every half lease; one that has fallen behind gets back what is remembered: the later
// watermark wins, a claim that was lost is an open run again, and a run that had ended is closed again and not run again,
// also where only the end of an earlier attempt can still be told. A leader that is told by the store that records are lost
// says what it remembers before it gives up the lease, so that the next one knows.
//
// A leader that finds no ledger at all waits for one lease and a second for such memories before it makes a new one and
// claims anything. A group's very first start pays this once; Create avoids it.
package scheduler
