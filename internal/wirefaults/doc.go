// Package wirefaults runs the whole of it, the scheduler, the election, the store on Redis and its client, in virtual time
// over connections that break: requests and replies are lost, late and torn, connections are reset, half-open and silent,
// dials hang, the server restarts, forgets its scripts and loses its data, and processes are killed and stopped. The
// server is miniredis, so that the scripts run, in a bubble of testing/synctest.
//
// A judge that shares no code with the scheduler looks every few milliseconds and reads the server's data by itself:
//
//   - at most one term is valid, and it is the one whose lease stands in the server (E1, E2);
//   - tokens grow (E3);
//   - each attempt starts once, after its claim, and no run is alive whose session is over (S1, S4);
//   - nothing of a job that skips overlapping ticks starts while a run of it is open;
//   - each second is in the history as exactly one thing, attempts follow only what was interrupted or not started, and
//     the history says what the work itself knows (S2, S3);
//   - somebody leads again soon after the faults are over;
//   - Run returns, and no connection and no goroutine is left.
//
// A test whose faults had no effect fails. A seed fixes the faults of the processes and of the server; which request meets
// a fault of the network depends on the order of goroutines, too, so that a seed that failed is likely to fail again, not
// sure to. What miniredis does otherwise than Redis is not seen here: store/redisstore has its own tests on a real server.
//
//	go test ./internal/wirefaults
//	go test ./internal/wirefaults -wire.seeds 1000 -wire.for 10m
//	go test ./internal/wirefaults -wire.first 17 -wire.seeds 1 -wire.log
package wirefaults
