package world

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Seeded returns the surroundings of one process of a simulation: chance from a seed, and a wall clock that is off by what
// offset says. A draw follows from the moment and from who asks, not from the order in which goroutines ask at one moment.
func Seeded(seed uint64, name string, offset func() time.Duration) *World {
	s := &seeded{seed: hashed(hashed(fnvOffset, name), fmt.Sprint(seed)), draws: make(map[uint64]uint64)}
	return &World{
		Wall:   func() time.Time { return time.Now().Add(offset()) },
		Random: s.draw,
		ID: func() string {
			return fmt.Sprintf("%016x-%08x-%s", time.Now().UnixNano(), uint32(s.draw()), name)
		},
		Secret: func() string { return fmt.Sprintf("%016x%016x", s.draw(), s.draw()) },
	}
}

type seeded struct {
	seed uint64

	mu    sync.Mutex
	at    time.Time
	draws map[uint64]uint64 // at that moment, by who asked
}

func (s *seeded) draw() uint64 {
	who := hashed(s.seed, Callers(3))
	now := time.Now()
	s.mu.Lock()
	if !now.Equal(s.at) {
		s.at = now
		clear(s.draws)
	}
	s.draws[who]++
	n := s.draws[who]
	s.mu.Unlock()
	return rand.New(rand.NewPCG(who+n, uint64(now.UnixNano()))).Uint64()
}

// hashed goes on with a hash (FNV-1a).
func hashed(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

const fnvOffset = 14695981039346656037

// stack is where a goroutine is: the innermost callers.
type stack [12]uintptr

var names sync.Map // of stacks

// Callers names the functions that the calling goroutine is in, innermost first, without the skip innermost ones: it
// tells a process's goroutines apart by what they do.
func Callers(skip int) string {
	var s stack
	n := runtime.Callers(skip, s[:])
	if name, known := names.Load(s); known {
		return name.(string)
	}
	frames := runtime.CallersFrames(s[:n])
	var who strings.Builder
	for {
		f, more := frames.Next()
		who.WriteString(f.Function)
		if !more {
			break
		}
		who.WriteByte(' ')
	}
	names.Store(s, who.String())
	return who.String()
}
