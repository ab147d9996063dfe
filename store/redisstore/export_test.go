package redisstore

import "time"

// Silence makes the hub of s ask for signs of life that often, instead of every 5 s.
func Silence(s *Store, d time.Duration) { s.hub.silence = d }
