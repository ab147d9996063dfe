package redlock

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/store"
)

// simNode is one server, exactly as the interface node describes it, by a clock of its own. What it does is done by the root.
type simNode struct {
	*simScene
	name string

	life    int // of the process
	born    time.Time
	durable bool
	data    simData
	writes  int
	before  []simData // what it had before its last writes, where the plan wants some of them lost

	off       time.Duration // its clock: off by so much at a moment, and faster by a rate from then on
	rate      float64
	since     time.Time
	stepped   time.Time // when it was last put right or wrong
	down      bool
	hung      time.Time // until then
	restarted time.Time
	watchers  []*simWatcher
}

// simData is what a server keeps on its disk.
type simData struct {
	groups map[string]*simNodeGroup
	staged map[string]simStaged // by group and transfer
}

type simNodeGroup struct {
	lease     simHeld
	counter   uint64
	vouched   string // the run in which a leader has vouched for the counter
	released  []string
	withdrawn []string
	sessions  map[string]simMember
	ledger    bool // there is one
	head      head
	marker    string
	buckets   simBuckets
	sum       uint64 // of what they hold
	inbox     map[string][]byte
	deleted   map[string][]byte // from the inbox, by the last step; never changed in place once that is done
}

type simHeld struct {
	replica, nonce, attempt string
	token                   uint64
	end                     int64 // ms of the server's clock; 0: nobody holds it
}

type simMember struct {
	info []byte
	end  int64
}

type simStaged struct {
	step    int
	buckets simBuckets
	at      int64
	run     string
}

// simBuckets are records by bucket and key; values are never changed in place.
type simBuckets map[string]map[string][]byte

func (b simBuckets) change(c store.Change) {
	if c.Delete {
		delete(b[c.Bucket], c.Key)
		if len(b[c.Bucket]) == 0 {
			delete(b, c.Bucket)
		}
		return
	}
	if b[c.Bucket] == nil {
		b[c.Bucket] = make(map[string][]byte)
	}
	b[c.Bucket][c.Key] = bytes.Clone(c.Value)
}

func simClone(from simBuckets) simBuckets {
	to := make(simBuckets, len(from))
	for b, records := range from {
		to[b] = maps.Clone(records)
	}
	return to
}

type simWatcher struct {
	link     *simLink
	over     func() bool
	group    string
	topic    store.Topic
	listener func(hub.Notice)
}

// What a node keeps, as the scripts do.
const (
	simReleased  = 16
	simStagedFor = 10 * time.Minute
)

func newSimNode(s *simScene, i int) *simNode {
	n := &simNode{simScene: s, name: fmt.Sprintf("n%d", i+1), life: 1}
	n.since = time.Now()
	n.born = n.now().Add(-time.Hour)
	n.data = simData{groups: make(map[string]*simNodeGroup), staged: make(map[string]simStaged)}
	return n
}

// run is the ID of the server's process.
func (n *simNode) run() string { return fmt.Sprintf("%s-run%d", n.name, n.life) }

// now is the server's clock.
func (n *simNode) now() time.Time {
	return time.Now().Add(n.off + time.Duration(n.rate*float64(time.Since(n.since))))
}

func (n *simNode) ms() int64 { return n.now().UnixMilli() }

// setClock puts the clock off, and lets it go faster by a rate from now on.
func (n *simNode) setClock(off time.Duration, rate float64) {
	n.off, n.rate, n.since = off, rate, time.Now()
}

func (n *simNode) wall() time.Duration { return time.Until(n.now()) }

func (n *simNode) stamp() stamp {
	up := n.now().Unix() - n.born.Unix() - 1 // it counts whole seconds between whole seconds
	return stamp{Run: n.run(), Up: time.Duration(max(up, 0)) * time.Second, Clock: n.now().UTC()}
}

// group returns a group with what is over taken out.
func (n *simNode) group(name string) *simNodeGroup {
	g := n.data.groups[name]
	if g == nil {
		g = &simNodeGroup{sessions: make(map[string]simMember), buckets: make(simBuckets), inbox: make(map[string][]byte)}
		n.data.groups[name] = g
	}
	ms := n.ms()
	if g.lease.end < ms {
		g.lease = simHeld{}
	}
	maps.DeleteFunc(g.sessions, func(_ string, m simMember) bool { return m.end < ms })
	return g
}

// writing remembers what there was before a write.
func (n *simNode) writing() {
	if n.writes++; !n.plan.truncates || n.writes%4 > 0 {
		return
	}
	n.before = append(n.before, n.data.clone())
	if len(n.before) > 40 {
		n.before = slices.Delete(n.before, 0, 20)
	}
}

func (d simData) clone() simData {
	c := simData{groups: make(map[string]*simNodeGroup, len(d.groups)), staged: maps.Clone(d.staged)}
	for name, g := range d.groups {
		k := *g
		k.released, k.withdrawn = slices.Clone(g.released), slices.Clone(g.withdrawn)
		k.sessions, k.inbox = maps.Clone(g.sessions), maps.Clone(g.inbox)
		k.buckets = simClone(g.buckets)
		c.groups[name] = &k
	}
	return c
}

func (g *simNodeGroup) holds(l store.Lease) bool {
	return g.lease.end > 0 && g.lease.replica == l.Replica && g.lease.nonce == l.Nonce && g.lease.token == l.Token
}

func (g *simNodeGroup) setSession(id string, info []byte, end int64) {
	if len(info) == 0 {
		info = g.sessions[id].info
	}
	g.sessions[id] = simMember{info: bytes.Clone(info), end: end}
}

func (n *simNode) acquire(name string, c claim) claimed {
	g, ms := n.group(name), n.ms()
	answer := claimed{stamp: n.stamp()}
	living, alive := g.sessions[c.ID]
	switch {
	case slices.Contains(g.released, c.Nonce) || slices.Contains(g.withdrawn, c.Attempt):
		answer.Outcome = claimLost
	case !alive && !c.Start:
		answer.Outcome = claimEnded
	case g.lease.end > 0 && (g.lease.replica != c.ID || g.lease.nonce != c.Nonce):
		n.writing()
		g.setSession(c.ID, c.Info, max(living.end, ms+c.Session.Milliseconds()))
		answer.Outcome, answer.Holder = claimHeld, g.holder(ms)
	case g.lease.end > 0 && simNumber(c.Attempt) < simNumber(g.lease.attempt):
		answer.Outcome = claimLost
	default:
		n.writing()
		if repaired := g.lease.end > 0 && g.lease.attempt == ""; !repaired {
			g.lease.attempt = c.Attempt
		}
		g.lease.replica, g.lease.nonce = c.ID, c.Nonce
		g.lease.end = ms + c.TTL.Milliseconds()
		g.setSession(c.ID, c.Info, max(living.end, g.lease.end))
		answer.Outcome, answer.Token, answer.Counter = claimGranted, g.lease.token, g.counter
		answer.Unsure = g.vouched != n.run()
	}
	return answer
}

// simNumber is what orders attempts.
func simNumber(attempt string) string { return attempt[:min(len(attempt), 16)] }

func (g *simNodeGroup) holder(ms int64) holder {
	if g.lease.end == 0 {
		return holder{}
	}
	return holder{
		Replica: g.lease.replica, Attempt: g.lease.attempt, Token: g.lease.token, Remaining: time.Duration(g.lease.end-ms) * time.Millisecond,
	}
}

func (n *simNode) settle(l store.Lease, attempt string) bool {
	g := n.group(l.Group)
	tried := g.lease.attempt == attempt || g.lease.attempt == "" && g.lease.token == l.Token
	if g.lease.end == 0 || g.lease.replica != l.Replica || g.lease.nonce != l.Nonce || !tried {
		return false
	}
	if g.counter > l.Token || g.counter == l.Token && g.lease.token != l.Token {
		return false
	}
	n.writing()
	g.lease.token, g.counter = l.Token, l.Token
	return true
}

func (n *simNode) renew(l store.Lease, vouch bool) renewed {
	g := n.group(l.Group)
	answer := renewed{n.stamp(), renewDone}
	_, alive := g.sessions[l.Replica]
	switch {
	case !g.holds(l):
		answer.Outcome = renewLost
	case !alive:
		answer.Outcome = renewEnded
	default:
		n.writing()
		if vouch {
			g.vouched = n.run()
		}
		g.lease.end = n.ms() + l.TTL.Milliseconds()
		g.setSession(l.Replica, nil, g.lease.end)
	}
	return answer
}

func (n *simNode) repair(l store.Lease, info []byte, vouch bool) renewed {
	g := n.group(l.Group)
	if g.counter > l.Token {
		return renewed{n.stamp(), renewOutrun}
	}
	if g.lease.end > 0 && !g.holds(l) || slices.Contains(g.released, l.Nonce) {
		return renewed{n.stamp(), renewLost}
	}
	n.writing()
	if vouch {
		g.vouched = n.run()
	}
	if g.lease.end == 0 {
		g.lease = simHeld{replica: l.Replica, nonce: l.Nonce, token: l.Token}
	}
	g.lease.end, g.counter = n.ms()+l.TTL.Milliseconds(), l.Token
	g.setSession(l.Replica, info, g.lease.end)
	return renewed{n.stamp(), renewDone}
}

func (n *simNode) release(l store.Lease, event string) {
	g := n.group(l.Group)
	n.writing()
	ours := g.lease.end > 0 && g.lease.replica == l.Replica && g.lease.nonce == l.Nonce
	g.released = remembered(g.released, l.Nonce)
	if ours {
		g.lease = simHeld{}
		n.tell(l.Group, store.LeaseFree, event)
	}
}

func (n *simNode) withdraw(l store.Lease, attempt, event string) {
	g := n.group(l.Group)
	n.writing()
	ours := g.lease.end > 0 && g.lease.replica == l.Replica && g.lease.nonce == l.Nonce && g.lease.attempt == attempt
	g.withdrawn = remembered(g.withdrawn, attempt)
	if ours {
		g.lease = simHeld{}
		if event != "" {
			n.tell(l.Group, store.LeaseFree, event)
		}
	}
}

func remembered(list []string, id string) []string {
	if slices.Contains(list, id) {
		return list
	}
	list = slices.Insert(list, 0, id)
	return list[:min(len(list), simReleased)]
}

func (n *simNode) leader(name string) holder { return n.group(name).holder(n.ms()) }

type simJoined struct {
	left time.Duration
	stamp
}

func (n *simNode) join(name string, r store.Replica, ttl time.Duration, start bool) simJoined {
	g, ms := n.group(name), n.ms()
	living, alive := g.sessions[r.ID]
	if !alive && !start {
		return simJoined{0, n.stamp()}
	}
	n.writing()
	end := max(living.end, ms+ttl.Milliseconds())
	g.setSession(r.ID, r.Info, end)
	return simJoined{time.Duration(end-ms) * time.Millisecond, n.stamp()}
}

func (n *simNode) leave(name, id string) {
	n.writing()
	delete(n.group(name).sessions, id)
}

type simReplicas struct {
	all []store.Replica
	stamp
}

func (n *simNode) replicas(name string) simReplicas {
	g := n.group(name)
	answer := simReplicas{nil, n.stamp()}
	for _, id := range slices.Sorted(maps.Keys(g.sessions)) {
		answer.all = append(answer.all, store.Replica{ID: id, Info: bytes.Clone(g.sessions[id].info)})
	}
	return answer
}

func (n *simNode) report(g *simNodeGroup, l *store.Lease) report {
	r := report{stamp: n.stamp(), Held: l != nil && g.holds(*l)}
	if g.ledger {
		r.Head, r.Marker = g.head, g.marker
	}
	return r
}

func (n *simNode) head(name string, l *store.Lease) report { return n.report(n.group(name), l) }

func (n *simNode) write(w write) written {
	g := n.group(w.Lease.Group)
	effect := writeDone
	switch {
	case g.head == w.To:
	case !g.holds(w.Lease):
		effect = writeLost
	case g.head != w.From:
		effect = writeBehind
	default:
		n.writing()
		kept := g.deleted
		if g.deleted = make(map[string][]byte); w.To.At.Number == 0 {
			maps.Copy(g.deleted, kept)
		}
		for _, c := range w.Changes {
			if c.Bucket == store.InboxBucket {
				if message, there := g.inbox[c.Key]; there {
					g.deleted[c.Key] = message
					delete(g.inbox, c.Key)
				}
				continue
			}
			if n.contents != nil {
				g.sum -= simRecord(c.Bucket, c.Key, g.buckets[c.Bucket][c.Key])
			}
			g.buckets.change(c)
			if n.contents != nil {
				g.sum += simRecord(c.Bucket, c.Key, g.buckets[c.Bucket][c.Key])
			}
		}
		g.ledger, g.head = true, w.To
		n.named(g)
	}
	return written{n.report(g, &w.Lease), effect}
}

func (n *simNode) stage(name, transfer string, step int, changes []store.Change) error {
	maps.DeleteFunc(n.data.staged, func(_ string, s simStaged) bool { return n.ms() > s.at+simStagedFor.Milliseconds() })
	key := name + " " + transfer
	s, begun := n.data.staged[key]
	switch {
	case step == 0 && !begun:
		n.writing()
		n.data.staged[key] = simStaged{at: n.ms(), run: n.run(), buckets: make(simBuckets)}
	case step == 0:
	case !begun || s.run != n.run() || step > s.step+1:
		return errors.New("the transfer has not begun, or has been forgotten")
	case step == s.step+1:
		n.writing()
		s.step, s.buckets = step, simClone(s.buckets)
		for _, c := range changes {
			s.buckets.change(c)
		}
		n.data.staged[key] = s
	}
	return nil
}

func (n *simNode) install(l store.Lease, transfer string, to head) written {
	g := n.group(l.Group)
	s, staged := n.data.staged[l.Group+" "+transfer]
	effect := writeDone
	switch {
	case !g.holds(l):
		effect = writeLost
	case g.ledger && simLater(g.head, to):
		effect = writeBehind
	case !staged || s.run != n.run() || n.ms() > s.at+simStagedFor.Milliseconds():
		effect = writeNothing
	default:
		n.writing()
		delete(n.data.staged, l.Group+" "+transfer)
		g.buckets, g.ledger, g.head, g.marker = s.buckets, true, to, n.run()
		g.sum = g.buckets.sum()
		maps.Copy(g.inbox, g.deleted)
		g.deleted = nil
		n.named(g)
	}
	return written{n.report(g, &l), effect}
}

// named judges that a node has what it says it has: no two different states have one name.
func (n *simNode) named(g *simNodeGroup) {
	if n.contents == nil { // nothing is judged
		return
	}
	if first, known := n.contents[g.head]; known && first != g.sum {
		n.fail("%s has another state %s on %s than a node before it", n.name, simPoint(g.head.At), simPoint(g.head.Base))
	}
	n.contents[g.head] = g.sum
}

// sum tells records from others, in whatever order they were put there.
func (b simBuckets) sum() (sum uint64) {
	for bucket, records := range b {
		for key, value := range records {
			sum += simRecord(bucket, key, value)
		}
	}
	return sum
}

func simRecord(bucket, key string, value []byte) uint64 {
	if value == nil {
		return 0
	}
	return simHash(bucket + " " + key + " " + string(value))
}

// simLater tells whether one state comes after another.
func simLater(a, b head) bool {
	return slices.Compare([]uint64{a.At.Token, a.At.Number, a.Base.Token, a.Base.Number}, []uint64{b.At.Token, b.At.Number, b.Base.Token, b.Base.Number}) > 0
}

func (n *simNode) vouch(name string) report {
	g := n.group(name)
	n.writing()
	g.ledger, g.marker = true, n.run()
	return n.report(g, nil)
}

type simBucketList struct {
	names []string
	report
}

func (n *simNode) buckets(name string) simBucketList {
	g := n.group(name)
	return simBucketList{slices.Sorted(maps.Keys(g.buckets)), n.report(g, nil)}
}

func (n *simNode) read(name string, l *store.Lease, bucket string, keys []string) page {
	g := n.group(name)
	records := g.buckets[bucket]
	if bucket == store.InboxBucket {
		records = g.inbox
		if l != nil && g.head.At.Token != l.Token && len(g.deleted) > 0 {
			records = maps.Clone(g.deleted)
			maps.Copy(records, g.inbox)
		}
	}
	p := page{report: n.report(g, l)}
	if keys == nil {
		keys = slices.Sorted(maps.Keys(records))
		p.Keys = keys
		if len(keys) > n.plan.page {
			return p
		}
	}
	for _, k := range keys[:min(len(keys), n.plan.page)] {
		p.Values = append(p.Values, bytes.Clone(records[k]))
	}
	return p
}

func (n *simNode) post(name, id string, message []byte) (full bool) {
	g := n.group(name)
	if _, there := g.inbox[id]; !there {
		if len(g.inbox) >= store.MaxInbox {
			return true
		}
		n.writing()
		g.inbox[id] = bytes.Clone(message)
	}
	n.tell(name, store.InboxFilled, id)
	return false
}

func (n *simNode) deliver(name string, messages []store.Record) {
	g := n.group(name)
	n.writing()
	for _, m := range messages {
		if _, there := g.inbox[m.Key]; !there {
			g.inbox[m.Key] = bytes.Clone(m.Value)
		}
	}
}

// tell sends news to the watchers.
func (n *simNode) tell(name string, t store.Topic, event string) {
	n.watchers = slices.DeleteFunc(n.watchers, func(w *simWatcher) bool { return w.over() })
	for _, w := range n.watchers {
		if w.group == name && w.topic == t {
			w.link.notify(w, hub.Notice{Kind: hub.News, Event: event})
		}
	}
}
