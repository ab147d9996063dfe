package redisstore

import "time"

// Silence makes the subscription of s ask for signs of life that often, instead of every 5 s.
func Silence(s *Store, d time.Duration) { s.hub.Silence = d }

// Attempted returns the commands that Check tries, less those that make a connection.
func Attempted() []string {
	names := []string{"subscribe", "unsubscribe", "hset"}
	for _, args := range attempts("k", "c") {
		names = append(names, args[0].(string))
	}
	return names
}
