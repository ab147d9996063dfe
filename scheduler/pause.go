package scheduler

import (
	"time"
)

// Pause says why a job, or a whole group, is paused, and for how long.
type Pause struct {
	Reason string    // at most 256 bytes are kept
	Until  time.Time // when it ends by itself, whole seconds; the zero time is at a Resume

	Author string    // who has asked for it; the inspector's, whatever is set
	Since  time.Time // when the leader did it; not for the caller to set
}

// steering is the newest pause or resume of a job, or of its whole group. It is kept after a resume, too: what comes late
// must not count as news.
type steering struct {
	At     int64  `json:"at"`               // when it was done: Unix ms, the store's clock
	Posted int64  `json:"posted,omitempty"` // when its author asked for it: Unix ms, the author's clock
	Author string `json:"author,omitempty"`
	Paused bool   `json:"paused,omitempty"` // else resumed
	Until  int64  `json:"until,omitempty"`  // Unix seconds; 0 is until a resume
	Reason string `json:"reason,omitempty"`
}

// tame makes a record that may come from anywhere harmless.
func (s *steering) tame() {
	s.Author, s.Reason = clip(s.Author, maxAuthor), clip(s.Reason, maxSummary)
	if until := time.Unix(s.Until, 0); s.Until < 0 || !until.Before(endOfTime) {
		s.Until = 0
	}
}

// holds reports whether it is a pause that goes on at that time. A nil one is none.
func (s *steering) holds(now time.Time) bool {
	return s != nil && s.Paused && (s.Until == 0 || now.Before(time.Unix(s.Until, 0)))
}

// pausedTo returns until when ticks count as due while paused, exclusive: for ever while a pause goes on, to its end after
// that. The zero time is never.
func pausedTo(now time.Time, of ...*steering) (to time.Time) {
	for _, s := range of {
		switch {
		case s.holds(now):
			return endOfTime
		case s != nil && s.Paused:
			to = later(to, time.Unix(s.Until, 0).UTC())
		}
	}
	return to
}

// newer returns the one of two decisions that counts where records were lost: the later, and of equal ones the pause.
func newer(a, b *steering) *steering {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case b.At > a.At || b.At == a.At && b.Paused:
		return b
	}
	return a
}

// view is the pause that goes on now as everybody may see it, or nil.
func (s *steering) view(now time.Time) *Pause {
	if !s.holds(now) {
		return nil
	}
	p := &Pause{Reason: s.Reason, Author: s.Author, Since: time.UnixMilli(s.At).UTC()}
	if s.Until != 0 {
		p.Until = time.Unix(s.Until, 0).UTC()
	}
	return p
}

// groupKey is the record of the bucket "ledger" that holds what is known of the group as a whole.
const groupKey = "group"

// groupRecord is what the ledger knows of a group as a whole.
type groupRecord struct {
	Version  int      `json:"v"`
	Steering steering `json:"steering"`
}

func decodeGroup(value []byte) (*groupRecord, error) {
	r := new(groupRecord)
	if err := decode(value, r); err != nil {
		return nil, err
	}
	r.Steering.tame()
	return r, nil
}

// steer does a pause or a resume in the record of a job, or with nil of the group.
func (l *leader) steer(j *jobState, o *order) {
	s := l.steering(j)
	*s = steering{At: s.At}
	if o.Verb == verbPause {
		s.Paused, s.Until, s.Reason = true, o.Until, o.Reason
	}
	l.outdate(j, o)
	if j != nil {
		l.revisit(j)
		return
	}
	for _, j := range l.book.sorted() {
		l.revisit(j)
	}
}

// outdate keeps, with whatever was decided before, that an order has come: what its author has asked for earlier is no news.
func (l *leader) outdate(j *jobState, o *order) {
	s := l.steering(j)
	s.At = max(l.term.StoreTime().UnixMilli(), s.At+1)
	s.Posted, s.Author = o.Posted, o.Author
	if j != nil {
		l.book.putJob(j)
		return
	}
	l.book.putGroup()
}

// steering is that of a job, or with nil of the group.
func (l *leader) steering(j *jobState) *steering {
	switch {
	case j == nil:
		return &l.book.pause
	case j.record.Steering == nil:
		j.record.Steering = new(steering)
	}
	return j.record.Steering
}

func (b *book) putGroup() {
	b.put(bucketLedger, groupKey, groupRecord{Version: formatVersion, Steering: b.pause})
}

// pass moves the watermark of a job to an instant, and says why the ticks before it were passed over.
func (l *leader) pass(j *jobState, until time.Time, reason string, now time.Time) {
	from := j.record.watermark()
	passed := row{first: from.Add(time.Second), last: until.Truncate(time.Second), reason: reason}
	if table := j.table(); table != nil {
		if passed.last = table.newest(from, until); !passed.last.IsZero() {
			passed.first, passed.ticks = table.next(from), table.count(from, passed.last)
		}
	}
	if passed.last.After(from) {
		l.book.skip(j, passed, now)
	}
	j.record.Watermark = max(j.record.Watermark, until.Unix())
	l.book.putJob(j)
}
