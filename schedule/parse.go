package schedule

import (
	"strings"
	"time"
)

// blanks divide fields.
const blanks = " \t"

var descriptors = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

// Parse reads an expression, or a descriptor such as "@daily" or "@every 90s", as the package comment defines them.
// Every error is a *SyntaxError.
func Parse(spec string, opts Options) (*Expr, error) {
	e := &Expr{source: spec, zone: opts.Zone}
	if e.zone == nil {
		e.zone = time.UTC
	}
	if bad := e.parse(spec, opts.Seconds); bad != nil {
		bad.Spec = spec
		return nil, bad
	}
	return e, nil
}

// MustParse is Parse for constants: it panics on an error and reads five fields in UTC.
func MustParse(spec string) *Expr {
	e, err := Parse(spec, Options{})
	if err != nil {
		panic(err)
	}
	return e
}

func (e *Expr) parse(spec string, seconds bool) *SyntaxError {
	whole := part{spec, 0}
	if len(spec) > MaxLength {
		return whole.from(MaxLength).wrong("", "longer than %d bytes", MaxLength)
	}
	for i := range len(spec) {
		switch c := spec[i]; {
		case c == '\n' || c == '\r':
			return whole.from(i).to(1).wrong("", "a line break inside")
		case c != '\t' && (c < ' ' || c > '~'):
			return whole.from(i).to(1).wrong("", "the byte %#02x is no printable ASCII", c)
		}
	}
	words := whole.words()
	if len(words) == 0 {
		return whole.wrong("", "empty; want %s", layout(seconds))
	}
	if name, ok := zonePrefix(words[0]); ok {
		zone, ok := load(name.text)
		switch {
		case name.text == "":
			return words[0].wrong("time zone", "a name is missing after %q", words[0].text)
		case !ok:
			return name.wrong("time zone", "unknown time zone %q; want an IANA name such as Europe/Berlin", name.text)
		}
		e.zone = zone
		if words = words[1:]; len(words) == 0 {
			return whole.from(len(spec)).wrong("", "nothing after the time zone; want %s", layout(seconds))
		}
	}
	if strings.HasPrefix(words[0].text, "@") {
		return e.parseDescriptor(words)
	}
	return e.parseFields(words, seconds)
}

// words returns the pieces between blanks.
func (p part) words() []part {
	var words []part
	for {
		p = p.from(len(p.text) - len(strings.TrimLeft(p.text, blanks)))
		if p.text == "" {
			return words
		}
		end := strings.IndexAny(p.text, blanks)
		if end < 0 {
			end = len(p.text)
		}
		words = append(words, p.to(end))
		p = p.from(end)
	}
}

// stretch returns the part of spec from the first of words to the last.
func stretch(spec string, words []part) part {
	first, last := words[0], words[len(words)-1]
	return part{spec[first.at : last.at+len(last.text)], first.at}
}

func zonePrefix(word part) (name part, ok bool) {
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if strings.HasPrefix(word.text, prefix) {
			return word.from(len(prefix)), true
		}
	}
	return word, false
}

func (e *Expr) parseDescriptor(words []part) *SyntaxError {
	word := words[0]
	name := strings.ToLower(word.text)
	if name == "@every" {
		return e.parseEvery(words)
	}
	if name == "@reboot" {
		return word.wrong("", "@reboot names no time: a job that one of many machines runs has no boot to follow")
	}
	fields, ok := descriptors[name]
	if !ok {
		return word.wrong("", "unknown descriptor %q; want @yearly, @annually, @monthly, @weekly, @daily, @midnight, "+
			"@hourly or @every", word.text)
	}
	if len(words) > 1 {
		return stretch(e.source, words[1:]).wrong("", "%s takes nothing after it", name)
	}
	return e.parseFields(part{fields, 0}.words(), false)
}

func (e *Expr) parseEvery(words []part) *SyntaxError {
	const field = "interval"
	if len(words) == 1 {
		return words[0].wrong(field, "@every needs a duration, such as @every 90s or @every 1h30m")
	}
	text := stretch(e.source, words[1:])
	d, err := time.ParseDuration(text.text)
	switch {
	case err != nil:
		return text.wrong(field, "%q is not a duration such as 90s or 1h30m", text.text)
	case d < time.Second:
		return text.wrong(field, "%s is shorter than one second", text.text)
	case d%time.Second != 0:
		return text.wrong(field, "%s is not a whole number of seconds", text.text)
	}
	e.every = int64(d / time.Second)
	return nil
}

// layout names the fields that are wanted.
func layout(seconds bool) string {
	if seconds {
		return "6 fields: second, minute, hour, day of month, month, day of week"
	}
	return "5 fields: minute, hour, day of month, month, day of week"
}

func (e *Expr) parseFields(words []part, six bool) *SyntaxError {
	kinds := []*kind{&seconds, &minutes, &hours, &monthDays, &months, &weekdays}
	if !six {
		kinds = kinds[1:]
	}
	if len(words) != len(kinds) {
		bad := stretch(e.source, words).wrong("", "%d fields; want %s", len(words), layout(six))
		if len(words) == 6 {
			bad.Reason = "six fields, which has two readings: seconds first (say the Seconds option), " +
				"or year last (not supported)"
			bad.cause = ErrSixFields
		}
		return bad
	}
	var read [6]reading
	read[0].values = 1 // second 0
	at := read[len(read)-len(kinds):]
	for i, k := range kinds {
		var bad *SyntaxError
		if at[i], bad = k.parse(words[i]); bad != nil {
			return bad
		}
	}
	e.settle(read[:])
	return e.refuseNever(words[len(words)-5:])
}

// refuseNever reports an expression without ticks; words are its last five fields.
func (e *Expr) refuseNever(words []part) *SyntaxError {
	var bad *SyntaxError
	if e.fields.never() {
		if e.fields.weekdays == allWeekdays {
			bad = words[2].wrong(monthDays.name, "never fires: no such day in any of its months")
		} else {
			bad = stretch(e.source, words[2:]).wrong("", "never fires: no month of it has such a day")
		}
	} else if !e.fixed {
		if _, ok := e.nextWall(settled); !ok {
			bad = stretch(e.source, words[:2]).wrong("",
				"never fires: on each of its days the clocks of %s skip the time", e.zone)
		}
	}
	if bad != nil {
		bad.cause = ErrNever
	}
	return bad
}
