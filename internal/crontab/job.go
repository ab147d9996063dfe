package crontab

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-singleton/singleton/schedule"
)

// job reads a job line.
func (p *parser) job(l line, words []word) {
	faults := len(p.bad.List)
	job := Job{Zone: p.zone, Shell: p.shell, Env: p.env, Line: l.n, Policies: p.apply(p.above)}
	fields, ok := p.divide(l, words)
	if ok {
		command := words[len(fields):]
		p.refuseUser(l, command)
		job.Spec, job.Command = join(fields), strings.TrimRight(l.text[command[0].at:], blanks)
		var err error
		if job.Expr, err = schedule.Parse(job.Spec, p.options()); err != nil {
			p.failSpec(l, fields, err)
		} else {
			p.wideSteps(l, fields)
		}
	}
	fine := len(p.bad.List) == faults && (p.above == nil || !p.above.bad)
	if p.name(l, words, &job, fine) && fine {
		p.file.Jobs = append(p.file.Jobs, job)
	}
}

func (p *parser) options() schedule.Options {
	return schedule.Options{Seconds: p.opts.Seconds, Zone: p.zone}
}

// divide returns the words of the schedule; what follows, at least one word, is the command.
func (p *parser) divide(l line, words []word) (fields []word, ok bool) {
	n := 5
	if p.opts.Seconds {
		n = 6
	}
	descriptor := strings.HasPrefix(words[0].text, "@")
	switch name := strings.ToLower(words[0].text); {
	case name == "@reboot":
		p.fail(l, words[0].at, len(name), "@reboot: a job that runs on one of many machines has no boot to follow")
		return nil, false
	case name == "@every":
		n = 2
	case descriptor:
		n = 1
	case p.refuseWords(l, words[:min(n, len(words))], n) || p.refuseCount(l, words, n):
		return nil, false
	}
	if len(words) > n {
		return words[:n], true
	}
	end := words[len(words)-1].end()
	if !descriptor {
		p.fail(l, end, 0, "too short: a job has %d fields and a command, %d words at least", n, n+1)
	} else if _, err := schedule.Parse(join(words), p.options()); err != nil {
		p.failSpec(l, words, err)
	} else {
		p.fail(l, end, 0, "a command is missing after %s", join(words))
	}
	return nil, false
}

// refuseWords reports what cannot belong to the n fields that are wanted: a character that only looks like a blank, or
// like nothing, and the beginning of a command.
func (p *parser) refuseWords(l line, fields []word, n int) bool {
	for count, w := range fields {
		for i, r := range w.text {
			if r <= ' ' || r > '~' {
				_, size := utf8.DecodeRuneInString(w.text[i:])
				p.fail(l, w.at+i, size, "%+q has no place in a schedule; its fields are divided by blanks or tabs",
					w.text[i:i+size])
				return true
			}
		}
		if !alphabet.MatchString(w.text) {
			p.fail(l, w.at, len(w.text), "%q looks like a command, after %d of the %d fields of a job", w.text, count, n)
			return true
		}
	}
	return false
}

const entryForm = `(?:\*|\?|(?:\d{1,4}|DAY)(?:-(?:\d{1,4}|DAY))?|[0-7]L|DAYL|(?:[0-7]|DAY)#\d)(?:/\d+)?`

var (
	weekdays = `(?:sun|mon|tue|wed|thu|fri|sat)`
	// What the word after the fields looks like when it is one more field.
	fieldForm   = regexp.MustCompile(`(?i)^` + strings.ReplaceAll(entryForm+`(?:,`+entryForm+`)*`, "DAY", weekdays) + `$`)
	alphabet    = regexp.MustCompile(`^[A-Za-z0-9*?,#-][A-Za-z0-9*?,#/-]*$`) // fields start with no slash
	weekdayForm = regexp.MustCompile(`(?i)^` + weekdays + `$`)
)

// isField reports whether word i is one more field rather than the name of a command.
func isField(words []word, i int) bool {
	if len(words) <= i || !fieldForm.MatchString(words[i].text) {
		return false
	}
	return len(words) > i+1 || !weekdayForm.MatchString(words[i].text)
}

// refuseCount reports a line that has one field too many or too few to be read safely; n are wanted.
func (p *parser) refuseCount(l line, words []word, n int) bool {
	var reason string
	var upTo int
	switch {
	case isField(words, n) && n == 5:
		reason, upTo = "six fields, which has two readings: seconds first (say --seconds), or year last (not supported)", 6
	case isField(words, n):
		reason, upTo = "seven fields; a year is not supported", 7
	case n == 6 && len(words) >= 6 && !isField(words, 5) && !weekdayForm.MatchString(words[5].text):
		if _, err := schedule.Parse(join(words[:5]), schedule.Options{}); err != nil {
			return false
		}
		reason, upTo = `five fields, where six are wanted, seconds first; "0 `+join(words[:5])+`" means the same`, 5
	default:
		return false
	}
	p.fail(l, words[0].at, words[upTo-1].end()-words[0].at, "%s", reason)
	return true
}

// accounts are names that stand in the user column of system crontabs and hardly are commands.
var accounts = map[string]bool{
	"root": true, "nobody": true, "www-data": true, "apache": true, "nginx": true, "postgres": true, "ubuntu": true,
	"ec2-user": true,
}

// refuseUser reports the user column of a system crontab.
func (p *parser) refuseUser(l line, command []word) {
	if len(command) > 1 && accounts[command[0].text] && !strings.HasPrefix(command[1].text, "-") {
		p.fail(l, command[0].at, len(command[0].text), "%q looks like the user column of a system crontab; "+
			"jobs run as the user that runs this program: leave it out", command[0].text)
	}
}

// join returns the schedule with one blank between its words.
func join(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// failSpec reports an error in the joined words where it stands in the line.
func (p *parser) failSpec(l line, words []word, err error) {
	bad, ok := errors.AsType[*schedule.SyntaxError](err)
	if !ok {
		p.fail(l, words[0].at, len(words[0].text), "%v", err)
		return
	}
	reason := bad.Reason
	if bad.Field != "" {
		reason = bad.Field + ": " + reason
	}
	at := place(words, bad.Offset)
	end := place(words, max(bad.Offset, bad.Offset+bad.Length-1)) + 1
	p.fail(l, at, max(0, min(end, words[len(words)-1].end())-at), "%s", reason)
}

// place returns where byte offset of the joined words stands in the line.
func place(words []word, offset int) int {
	for _, w := range words {
		if offset <= len(w.text) {
			return w.at + offset
		}
		offset -= len(w.text) + 1
	}
	return words[len(words)-1].end()
}

// ranges are the fields of a schedule with seconds, their first values and their sizes.
var ranges = []struct {
	field       string
	first, size int
}{
	{"second", 0, 60}, {"minute", 0, 60}, {"hour", 0, 24}, {"day of month", 1, 31}, {"month", 1, 12}, {"day of week", 0, 7},
}

// wideSteps gives notice of steps such as that of "*/90", which does not mean every 90 minutes.
func (p *parser) wideSteps(l line, fields []word) {
	if strings.HasPrefix(fields[0].text, "@") {
		return
	}
	for i, r := range ranges[len(ranges)-len(fields):] {
		for entry := range strings.SplitSeq(fields[i].text, ",") {
			if n, err := strconv.Atoi(strings.TrimPrefix(entry, "*/")); err == nil && n > r.size && strings.HasPrefix(entry, "*/") {
				p.file.Notices = append(p.file.Notices, fmt.Sprintf("%s:%d: %s: %q means %d only: its step is larger than the field",
					p.bad.File, l.n, r.field, entry, r.first))
			}
		}
	}
}

// name gives the job its name, and reports one that is taken. Of a job that is not fine only a given name counts.
func (p *parser) name(l line, words []word, job *Job, fine bool) bool {
	var given setting
	if p.above != nil {
		given = p.above.values["name"]
	}
	job.Name = given.value.text
	if job.Name == "" {
		if !fine {
			return false
		}
		job.Name = autoName(job)
	}
	first, taken := p.owner[job.Name]
	if !taken {
		p.owner[job.Name] = job
		return true
	}
	at, end := words[0].at, words[len(words)-1].end()
	switch {
	case given.value.text != "":
		p.fail(given.line, given.value.at, len(given.value.text), "name: %q is the name of the job on line %d too",
			job.Name, first.Line)
	case first.Spec == job.Spec && first.Command == job.Command:
		p.fail(l, at, end-at, "the same schedule and command as on line %d: "+
			"give this job a name, with \"#: name=...\" above it", first.Line)
	default:
		p.fail(l, at, end-at, "this job would be called %q, as the one on line %d is: "+
			"give it another name, with \"#: name=...\" above it", job.Name, first.Line)
	}
	return false
}

var unnamable = regexp.MustCompile(`[^a-z0-9._-]+`)

// autoName names a job after its command's program and a hash of what tells it from others.
func autoName(job *Job) string {
	program := "job"
	for w := range strings.FieldsSeq(job.Command) {
		if strings.Contains(w, "=") { // an assignment in front of the command
			continue
		}
		w = w[strings.LastIndexByte(w, '/')+1:]
		w = strings.Trim(unnamable.ReplaceAllString(strings.ToLower(w), "-"), "._-")
		if w = strings.TrimRight(w[:min(len(w), 32)], "._-"); w != "" {
			program = w
		}
		break
	}
	sum := sha256.Sum256([]byte(job.Spec + "\x00" + job.Zone.String() + "\x00" + job.Command))
	return fmt.Sprintf("%s-%x", program, sum[:4])
}
