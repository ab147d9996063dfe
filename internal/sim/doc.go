// Package sim replays what befalls a group of replicas: the real election and scheduler over a store in memory, in virtual
// time, with everything that can go wrong drawn from a seed.
//
// # How it is replayed
//
// All goroutines of a scene live in a bubble of testing/synctest. Whatever a replica does passes the bus: a call to the
// store and its reply, a hint, a goroutine that a timer or a signal has woken (world.WaitTurn), the start of a job's work
// and its end. There it waits for the root goroutine, which lets all come to rest, sorts what has arrived, draws an order
// from the seed, and lets one thing happen; then it waits for rest again. Nothing else decides anything:
//
//   - what replicas draw follows from the seed, the moment and who draws (world.Seeded);
//   - their log lines are gathered in each step and sorted;
//   - when a timer of a replica and something of the root's fall together, the timer is first, because the root lets all
//     come to rest before it looks.
//
// Everything is written into one text, whose hash is the same for a seed each time, on any number of processors and under
// the race detector. Where it is not, -sim.trace writes the text itself, and the first line that differs shows why.
//
// # What happens
//
// Requests and replies are lost, delayed past later ones, and doubled. Replicas pause for longer than their lease and
// session, are killed at once or at a named point (before or after a commit or a post, at the start of a job's work, after
// its end), stop with a grace, resign, are cut off, lose and get jobs, are replaced by another release that has other
// schedules, and their wall clocks jump and drift. An operator triggers, pauses, resumes, cancels and resets. The store is out of reach, its clock steps, and in a third of the seeds
// it is wiped, or loses its newest records.
//
// # Who judges
//
// Two observers between the replicas and the store, and one of the jobs' work. They read the records with decoders of
// their own, and enumerate the ticks of each job one by one: none of their code is the scheduler's.
//
//   - leases: at each moment at most one replica believes that it leads, and no context of a term or run outlives its
//     lease or session in the store; tokens grow.
//   - ledger: a commit has an effect only under the lease, and only as the next of its term; a watermark moves forward, and
//     the commit that moves it says of each tick in between that it was claimed or why it was skipped; no attempt is claimed
//     twice, or after a success; no run is closed without an entry; no two runs of a job that excludes them are open.
//   - requests: one has one run at most, no tick is claimed while its job or the group is paused, and a while after the last
//     fault each that the store has taken has an answer.
//   - work: an attempt starts once, after its claim and while the claim stands, and not beside another of its job; the
//     history says of each how it really ended. A while after the last fault no job is behind and no run is open for ever.
//
// What is left of the goroutines of a replica fails the bubble. A seed that shows little (starts, terms, faults) fails.
package sim
