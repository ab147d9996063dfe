package crontab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-singleton/singleton/store"
)

// keys are the options of a "#:" line.
var keys = []string{"name", "overlap", "catch-up", "catch-up-max", "window", "on-interrupt", "timeout", "retry", "retry-delay", "jitter"}

// settings are the options of the "#:" lines above a job.
type settings struct {
	last   line // the line right above
	values map[string]setting
	bad    bool // something of them has been reported
}

// setting is one option where it stands.
type setting struct {
	line  line
	value word
}

// settings reads a "#:" line.
func (p *parser) settings(l line, words []word) {
	if p.above == nil {
		p.above = &settings{values: map[string]setting{}}
	}
	s := p.above
	s.last = l
	faults := len(p.bad.List)
	words[0].at, words[0].text = words[0].at+2, words[0].text[2:]
	for len(words) > 0 {
		w, n := words[0], quoted(words)
		key, value, _ := strings.Cut(w.text, "=")
		switch {
		case n > 0 && slices.Contains(keys, key):
			at := w.end() - len(value)
			p.fail(l, at, words[n-1].end()-at, "%s: a value stands without quotes, and has no blanks", key)
		case w.text != "":
			p.setting(l, w)
		}
		words = words[max(1, n):]
	}
	s.bad = s.bad || len(p.bad.List) > faults
}

// quoted returns how many words an option takes whose value begins with a quote, which none does; else 0.
func quoted(words []word) int {
	_, value, _ := strings.Cut(words[0].text, "=")
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return 0
	}
	for i, w := range words {
		if (i > 0 || len(value) > 1) && strings.HasSuffix(w.text, value[:1]) {
			return i + 1
		}
	}
	return len(words)
}

// setting reads one option.
func (p *parser) setting(l line, w word) {
	key, value, ok := strings.Cut(w.text, "=")
	at := w.end() - len(value)
	first, taken := p.above.values[key]
	switch {
	case !slices.Contains(keys, key):
		p.fail(l, w.at, max(1, len(key)), "unknown option %q; one of %s", key, strings.Join(keys, ", "))
		return
	case !ok:
		p.fail(l, w.end(), 0, "%s: \"=\" and a value are missing", key)
		return
	case value == "":
		p.fail(l, w.end(), 0, "%s: a value is missing", key)
		return
	case taken:
		where := ""
		if first.line.n != l.n {
			where = fmt.Sprintf(" on line %d", first.line.n)
		}
		p.fail(l, w.at, len(key), "%s is given already%s", key, where)
		return
	}
	reason := new(Policies).set(key, value)
	if key == "name" && store.CheckName("job", value) != nil {
		reason = fmt.Sprintf("%q is not valid: use 1 to 128 letters, digits, '.', '_' and '-', "+
			"starting with a letter or digit", value)
	}
	if reason != "" {
		p.fail(l, at, len(value), "%s: %s", key, reason)
		return
	}
	p.above.values[key] = setting{l, word{at, value}}
}

// unused reports "#:" lines without a job below.
func (p *parser) unused() {
	if p.above != nil {
		l := p.above.last
		words := l.words()
		at := words[0].at
		p.fail(l, at, words[len(words)-1].end()-at, "options without a job on the line below")
		p.above = nil
	}
}

// apply lays the options over policies for the whole file, and reports those that do not go together.
func (p *parser) apply(s *settings) Policies {
	all := p.opts.Policies
	if s == nil {
		return all
	}
	for key, v := range s.values {
		_ = all.set(key, v.value.text) // has been looked at
	}
	fail := func(v setting, format string, args ...any) {
		p.fail(v.line, v.value.at, len(v.value.text), format, args...)
		s.bad = true
	}
	overlap, hasOverlap := s.values["overlap"]
	catchUp, hasCatchUp := s.values["catch-up"]
	if all.drops() {
		switch {
		case !hasOverlap:
			fail(catchUp, "catch-up: "+dropsTicks+" here, because %[1]s is the default given for the whole file", all.Overlap)
		case !hasCatchUp:
			fail(overlap, "overlap: %s does not go with catch-up=all, the default given for the whole file; "+
				"say overlap=queue or allow", all.Overlap)
		default:
			fail(catchUp, "catch-up: "+dropsTicks, all.Overlap)
		}
	}
	if v, ok := s.values["catch-up-max"]; ok && all.CatchUp != "all" {
		fail(v, "catch-up-max: only catch-up=all makes up more than one tick")
	}
	if v, ok := s.values["retry-delay"]; ok && all.Retry <= 1 {
		fail(v, "retry-delay: nothing is retried; say how many attempts there are in all with retry=2 or more")
	}
	return all
}
