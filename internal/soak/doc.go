// Package soak runs the whole system as users do: several `singleton cron` processes on a real store, an every-second job,
// and a fault every few seconds; afterwards every tick is counted from the lines that the job has written, and from the
// history.
//
// Its own tests are about Redis and ZooKeeper; a store that lives in another module calls Run in a test of its own. They
// take -for (the length of one scenario) and -on (a store) and print what they measured:
//
//	go test ./internal/soak -v -for 5m -on zookeeper -timeout 60m
package soak
