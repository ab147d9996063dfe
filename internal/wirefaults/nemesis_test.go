package wirefaults

import (
	"maps"
	"slices"
	"testing/synctest"
	"time"
)

// deeds are what the nemesis does.
var deeds = []string{
	"kill", "stop", "begin", "resign", "cut", "silence", "half-open", "stall", "restart the server", "flush the scripts",
}

// trouble does harm for so long.
func (s *scene) trouble(d time.Duration) {
	s.rough = true
	s.each(func(l *link) { l.rough = true })
	for end := time.Now().Add(d); time.Now().Before(end) && s.sound(); {
		s.pass(s.between(200*time.Millisecond, 4*time.Second))
		s.harm()
	}
}

func (s *scene) each(change func(*link)) {
	for _, p := range s.alive {
		p.link.set(change)
	}
}

// harm does one deed, to the leader more often than to others.
func (s *scene) harm() {
	if len(s.alive) == 0 {
		s.begin()
		return
	}
	p := s.alive[s.rand.IntN(len(s.alive))]
	if leader := s.leader(); slices.Contains(s.alive, leader) && s.chance(2) {
		p = leader
	}
	deed := deeds[s.rand.IntN(len(deeds))]
	s.counts[deed]++
	s.say("%s: %s", deed, p.name)
	switch deed {
	case "kill":
		s.kill(p)
	case "stop":
		p.cancel()
		s.replace(p)
	case "begin":
		if len(s.alive) < 5 {
			s.begin()
		}
	case "resign":
		go func() { _ = p.Resign(s.t.Context()) }() // it waits for the end of the term
	case "cut":
		p.link.cut(s.between(100*time.Millisecond, 6*time.Second), false)
	case "silence":
		p.link.cut(s.between(100*time.Millisecond, 6*time.Second), true)
	case "half-open":
		p.link.cut(0, true)
	case "stall":
		p.link.stall(s.between(100*time.Millisecond, 6*time.Second))
	case "restart the server":
		down, silent := s.between(10*time.Millisecond, 5*time.Second), s.chance(2)
		for _, p := range s.alive {
			p.link.cut(down, silent)
		}
		s.flushScripts()
	case "flush the scripts":
		s.flushScripts()
	}
}

func (s *scene) flushScripts() { s.command("*2\r\n$6\r\nSCRIPT\r\n$5\r\nFLUSH\r\n") }

// kill ends a process without a word.
func (s *scene) kill(p *process) {
	s.mu.Lock()
	close(p.dead)
	maps.DeleteFunc(s.active, func(_ string, e *execution) bool { return e.process == p })
	s.mu.Unlock()
	p.link.kill()
	p.cancel()
	s.replace(p)
}

// replace takes a process from those that are meant to run, and mostly starts another.
func (s *scene) replace(p *process) {
	s.alive = slices.DeleteFunc(s.alive, func(o *process) bool { return o == p })
	if !s.chance(3) {
		s.begin()
	}
}

// heal ends all faults.
func (s *scene) heal() {
	s.say("healed")
	s.rough = false
	for _, p := range s.all { // those that are stopping, too
		p.link.heal()
	}
	for len(s.alive) < 2 {
		s.begin()
	}
}

// settle is how long it takes after the faults until all is well: a subscription that has fallen silent is found out by its
// second PING.
const settle = 12 * time.Second

// handOver stops the leader while all is well: another hears of it and leads at once, though all subscriptions have fallen
// silent a while ago.
func (s *scene) handOver() {
	for _, p := range s.all {
		p.link.silence()
	}
	s.pass(settle)
	for _, p := range s.all {
		p.link.end()
	}
	leader := s.leader()
	if !s.sound() || !slices.Contains(s.alive, leader) {
		return
	}
	s.say("hand over: %s", leader.name)
	s.counts["hand over"]++
	leader.cancel()
	s.alive = slices.DeleteFunc(s.alive, func(p *process) bool { return p == leader })
	if len(s.alive) < 3 {
		s.begin()
	}
	synctest.Wait()
	s.await(atOnce)
}

// atOnce is how long a release, its hint and a follower's question take, over connections of which some have ended
// unnoticed.
const atOnce = 600 * time.Millisecond

// startAnew has the server lose its data, and all who could remember it die: tokens grow all the same.
func (s *scene) startAnew() {
	s.say("start anew")
	s.mu.Lock()
	s.lost = time.Now()
	s.mu.Unlock()
	s.server.FlushAll()
	for _, p := range slices.Clone(s.alive) {
		s.kill(p)
	}
	s.begin()
	s.await(soon)
}

// wipe has the server lose its data while all is well: those who remember are there, and know all.
func (s *scene) wipe() {
	s.pass(settle)
	if !s.sound() {
		return
	}
	s.say("wipe")
	s.counts["wipe"]++
	s.snapshot()
	s.mu.Lock()
	s.lost = time.Now()
	s.mu.Unlock()
	s.server.FlushAll()
	s.pass(15 * time.Second)
}
