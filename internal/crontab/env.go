package crontab

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

// assignment is a line NAME=value, not judged yet.
type assignment struct {
	name  word
	value word // from the first character after "=" and blanks to the end of the line
}

var (
	assignmentForm = regexp.MustCompile(`^[ \t]*(?:"([^"=]*)"|'([^'=]*)'|([^ \t=]+))[ \t]*=[ \t]*`)
	variableForm   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
)

// assignment reports whether the line has a "=" after its first word, which no job line has.
func (l line) assignment() (a assignment, ok bool) {
	m := assignmentForm.FindStringSubmatchIndex(l.text)
	if m == nil {
		return a, false
	}
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 {
			a.name = word{m[i], l.text[m[i]:m[i+1]]}
		}
	}
	a.value = word{m[1], l.text[m[1]:]}
	return a, true
}

// assign makes an assignment hold for what follows.
func (p *parser) assign(l line, a assignment) {
	if !variableForm.MatchString(a.name.text) {
		p.fail(l, a.name.at, len(a.name.text), "%q cannot name a variable: use letters, digits, '_', '.' and '-', "+
			"not starting with a digit", a.name.text)
		return
	}
	value, ok := p.unquote(l, a.value)
	if !ok || !p.meaning(l, a.name.text, value) {
		return
	}
	// Jobs above share the old slice.
	env := slices.DeleteFunc(slices.Clone(p.env), func(s string) bool { return strings.HasPrefix(s, a.name.text+"=") })
	env = append(env, a.name.text+"="+value.text)
	slices.Sort(env)
	p.env = slices.Clip(env)
}

// unquote returns the value of an assignment without its quotes, or without the blanks at its end.
func (p *parser) unquote(l line, v word) (word, bool) {
	if v.text == "" || v.text[0] != '"' && v.text[0] != '\'' {
		return word{v.at, strings.TrimRight(v.text, blanks)}, true
	}
	quote := v.text[:1]
	inside, after, closed := strings.Cut(v.text[1:], quote)
	if !closed {
		p.fail(l, v.at, 1, "no closing %s", quote)
		return v, false
	}
	if rest := strings.TrimSpace(after); rest != "" {
		at := v.at + strings.Index(v.text[len(inside)+2:], rest) + len(inside) + 2
		p.fail(l, at, len(rest), "text after the closing %s", quote)
		return v, false
	}
	return word{v.at + 1, inside}, true
}

// meaning takes over what a variable means beyond being one.
func (p *parser) meaning(l line, name string, value word) bool {
	text := value.text
	switch name {
	case "SHELL":
		if !strings.HasPrefix(text, "/") {
			p.fail(l, value.at, len(text), "SHELL: %q is not an absolute path", text)
			return false
		}
		p.shell = text
	case "TZ":
		if strings.ContainsAny(text, blanks) {
			p.inFront(l, name, value)
			return false
		}
	case "CRON_TZ":
		if text == "" {
			p.zone = p.opts.Zone
			return true
		}
		if strings.ContainsAny(text, blanks) {
			p.inFront(l, name, value)
			return false
		}
		zone, err := loadZone(text)
		if err != nil {
			p.fail(l, value.at, len(text), "CRON_TZ: %v", err)
			return false
		}
		p.zone = zone
	case "MAILTO", "MAILFROM":
		if !p.mail {
			p.mail = true
			p.file.Notices = append(p.file.Notices,
				fmt.Sprintf("%s:%d: %s: no mail is sent; the output of jobs goes to the log", p.bad.File, l.n, name))
		}
	}
	return true
}

// inFront reports a zone in front of a job, which other programs take.
func (p *parser) inFront(l line, name string, value word) {
	zone, _, _ := strings.Cut(strings.ReplaceAll(value.text, "\t", " "), " ")
	if _, err := loadZone(zone); err != nil {
		zone = "Europe/Berlin, say,"
	}
	p.fail(l, value.at, len(value.text), "%s: a zone is one word; for the jobs below, write CRON_TZ=%s on a line of its own",
		name, zone)
}

// loadZone takes the names of zones that package schedule takes.
func loadZone(name string) (*time.Location, error) {
	expr, err := schedule.Parse("CRON_TZ="+name+" * * * * *", schedule.Options{})
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q; want an IANA name such as Europe/Berlin", name)
	}
	return expr.Zone(), nil
}
