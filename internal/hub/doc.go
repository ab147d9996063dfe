// Package hub keeps a store's books of who watches what, so that all watchers share one connection and a store has but to
// say how it hears: it gives New a function that subscribes to the points of the hub and tells it what it hears of them.
//
// The function runs in a goroutine of the hub while anything is watched, and again, after a pause that doubles from 50 ms
// to 2 s, when it has returned. Close ends it.
package hub
