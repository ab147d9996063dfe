// Package soak runs the whole system as users do: several `singleton cron` processes on a real redis-server, an
// every-second job, and a fault every few seconds; afterwards every tick is counted from the lines that the job has
// written, and from the history.
//
// The package is its tests. They take -for (the length of one scenario) and print what they measured:
//
//	go test ./internal/soak -v -for 5m -timeout 60m
package soak
