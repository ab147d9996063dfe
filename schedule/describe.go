package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Describe says the expression in words, such as "at 03:00, Monday to Friday" or "every 5 minutes". Times are those
// of the expression's zone, which it does not name.
func (e *Expr) Describe() string {
	switch {
	case e.zone == nil:
		return "never"
	case e.every > 0:
		return "every " + interval(e.every)
	}
	dates := e.fields.dates()
	if times, ok := e.fields.clockTimes(); ok {
		if e.fields.everyDay() {
			return "daily at " + times + dates
		}
		return "at " + times + dates
	}
	return e.fields.rhythm() + dates
}

// interval says a number of seconds; 1 of a unit is just that unit.
func interval(sec int64) string {
	if sec < 600 && sec%60 != 0 && sec != 1 {
		return count(int(sec), "second")
	}
	var words []string
	for _, unit := range []struct {
		name string
		sec  int64
	}{{"hour", 3600}, {"minute", 60}, {"second", 1}} {
		if n := sec / unit.sec; n > 0 {
			words = append(words, count(int(n), unit.name))
		}
		sec %= unit.sec
	}
	if len(words) == 1 {
		return strings.TrimPrefix(words[0], "1 ")
	}
	return strings.Join(words, " ")
}

// fewTimes is how many times of day are listed one by one.
const fewTimes = 6

// clockTimes lists the times of day, where they are few.
func (f *fields) clockTimes() (string, bool) {
	if f.hour.size()*f.minute.size()*f.second.size() > fewTimes {
		return "", false
	}
	if f.hour.size() > 3 && len(f.hourRows()) == 1 {
		return "", false
	}
	var times []string
	for h := range f.hour.all {
		for m := range f.minute.all {
			for s := range f.second.all {
				times = append(times, clockTime(h, m, s))
			}
		}
	}
	return list(times, "and"), true
}

func clockTime(h, m, s int) string {
	if s == 0 {
		return fmt.Sprintf("%02d:%02d", h, m)
	}
	return fmt.Sprintf("%02d:%02d:%02d", h, m, s)
}

// rhythm says times of day that are too many to list.
func (f *fields) rhythm() string {
	if f.second.size() == 1 {
		if text, ok := f.minuteRhythm(f.second.from(0)); ok {
			return text
		}
	}
	if f.second != 1 {
		return f.secondRhythm()
	}
	hour := " of every hour"
	if f.hour != between(0, 23) {
		hour = " in " + f.hourPhrase()
	}
	if n, ok := f.minute.even(60); ok {
		return "every " + interval(int64(n)*60) + strings.TrimPrefix(hour, " of every hour")
	}
	return "at " + phrase("minute", f.minute) + hour
}

// minuteRhythm says the common forms that have one second of the minute.
func (f *fields) minuteRhythm(s int) (string, bool) {
	step, even := f.minute.even(60)
	even = even && s == 0
	m := f.minute.from(0)
	single := f.minute.size() == 1
	if f.hour == between(0, 23) {
		switch {
		case even && single:
			return "hourly", true
		case even:
			return "every " + interval(int64(step)*60), true
		case single && s == 0:
			return "at " + count(m, "minute") + " past every hour", true
		}
		return "", false
	}
	if rows := f.hourRows(); len(rows) == 1 {
		first, last := rows[0].lo, rows[0].hi
		switch {
		case single:
			return fmt.Sprintf("hourly from %s to %s", clockTime(first, m, s), clockTime(last, m, s)), true
		case even:
			end := clockTime(last, f.minute.upTo(59), s)
			return fmt.Sprintf("every %s from %s to %s", interval(int64(step)*60), clockTime(first, 0, s), end), true
		}
	}
	if hours, ok := f.hour.even(24); ok && single {
		text := "every " + interval(int64(hours)*3600)
		if m == 0 && s == 0 {
			return text, true
		}
		return text + " from " + clockTime(0, m, s), true
	}
	return "", false
}

// secondRhythm says what has other seconds than 0.
func (f *fields) secondRhythm() string {
	text, link := "at "+phrase("second", f.second), " of "
	allMinutes, allHours := f.minute == between(0, 59), f.hour == between(0, 23)
	if n, ok := f.second.even(60); ok {
		text, link = "every "+interval(int64(n)), " in "
		switch rows := f.hourRows(); {
		case allMinutes && allHours:
			return text
		case len(rows) == 1 && (allMinutes || f.minute.size() == 1 && f.hour.size() == 1):
			return fmt.Sprintf("%s from %s to %s", text, clockTime(rows[0].lo, f.minute.from(0), 0),
				clockTime(rows[0].hi, f.minute.upTo(59), f.second.upTo(59)))
		}
	} else if allMinutes {
		text += " of every minute"
		link = " in "
	}
	if !allMinutes {
		text, link = text+link+phrase("minute", f.minute), " of "
	}
	switch {
	case !allHours:
		return text + link + f.hourPhrase()
	case !allMinutes:
		return text + " of every hour"
	}
	return text
}

// hourRows returns the hours as rows, which go on across midnight only where that leads to a day of the same kind.
func (f *fields) hourRows() []run {
	if f.everyDay() && f.month == between(1, 12) {
		return f.hour.cycle(0, 23)
	}
	return f.hour.runs()
}

func (f *fields) hourPhrase() string { return phraseRows("hour", f.hour, f.hourRows()) }

// everyDay reports that the day fields say nothing.
func (f *fields) everyDay() bool { return f.days == allDays && f.weekdays == allWeekdays }

// dates says on which days, after a comma, or nothing for all.
func (f *fields) dates() string {
	in := ""
	if f.month != between(1, 12) {
		in = ", in " + named(f.month.cycle(1, 12), monthName)
	}
	ofDays, ofWeek := f.dayPhrase(), ""
	switch {
	case f.everyDay():
		return in
	case f.weekdays == allWeekdays:
		if f.days.size() == 1 && f.month.size() == 1 && f.last|f.nearest == 0 {
			return fmt.Sprintf(", on %d %s", f.days.from(0), monthName(f.month.from(0)))
		}
		return ", on " + ofDays + " of the month" + in
	case f.days == allDays:
		return ", " + f.eachWeekday("") + in
	case f.either:
		ofWeek = ", or " + f.eachWeekday("on ")
	default:
		ofWeek = ", if that is " + f.weekdayPhrase("a ", "or")
	}
	return ", on " + ofDays + " of the month" + ofWeek + in
}

// dayPhrase says the days of the month: "days 1 to 5 and the last day".
func (f *fields) dayPhrase() string {
	var items []string
	if f.days != 0 {
		items = append(items, phrase("day", f.days))
	}
	for n := range f.last.all {
		if n == 0 {
			items = append(items, "the last day")
		} else {
			items = append(items, "the "+strings.TrimPrefix(ordinal(n)+" ", "1st ")+"day before the last")
		}
	}
	for d := range f.nearest.all {
		if d == 0 {
			items = append(items, "the last working day")
		} else {
			items = append(items, fmt.Sprintf("the working day nearest day %d", d))
		}
	}
	return list(items, "and")
}

// eachWeekday says the weekdays as plain as they allow: "Monday to Friday", "every Friday".
func (f *fields) eachWeekday(on string) string {
	if f.nth|f.final == 0 && f.weekdays.size() > 1 {
		return on + named(mondayFirst(f.weekdays).cycle(1, 7), weekdayName)
	}
	return f.weekdayPhrase("every ", "and")
}

// weekdayPhrase says the weekdays: "every Monday and the last Friday of the month".
func (f *fields) weekdayPhrase(each, word string) string {
	var items []string
	for w := range mondayFirst(f.weekdays).all {
		items = append(items, each+weekdayName(w))
	}
	for n := range f.nth.all {
		items = append(items, fmt.Sprintf("the %s %s of the month", ordinal(n/7+1), weekdayName(n%7)))
	}
	for w := range f.final.all {
		items = append(items, fmt.Sprintf("the last %s of the month", weekdayName(w)))
	}
	return list(items, word)
}

// mondayFirst moves Sunday from 0 to 7.
func mondayFirst(s set) set { return (s | s<<7) & between(1, 7) }

func weekdayName(w int) string { return time.Weekday(w % 7).String() }

func monthName(m int) string { return time.Month(m).String() }

// even returns the step of a set that goes round a cycle of 0 to size-1 in equal steps from 0.
func (s set) even(size int) (step int, ok bool) {
	if s == 1 {
		return size, true
	}
	step = s.step()
	return step, step > 0 && s.has(0) && s.has(size-step)
}

// phrase says numbers with what they count: "minute 5", "minutes 0 to 4 and 30", "every 7th minute from 0 to 56".
func phrase(noun string, s set) string { return phraseRows(noun, s, s.runs()) }

func phraseRows(noun string, s set, rows []run) string {
	if step := s.step(); step > 1 && s.size() > 4 {
		return fmt.Sprintf("every %s %s from %d to %d", ordinal(step), noun, s.from(0), s.upTo(63))
	}
	if s.size() > 1 {
		noun += "s"
	}
	return noun + " " + named(rows, strconv.Itoa)
}

// named lists rows by the names of their members, those of three and more by their ends.
func named(rows []run, name func(int) string) string {
	var items []string
	for _, r := range rows {
		switch r.size {
		case 1:
			items = append(items, name(r.lo))
		case 2:
			items = append(items, name(r.lo), name(r.hi))
		default:
			items = append(items, name(r.lo)+" to "+name(r.hi))
		}
	}
	return list(items, "and")
}

// list joins items: "a, b and c".
func list(items []string, word string) string {
	if n := len(items); n > 1 {
		last := items[n-2] + " " + word + " " + items[n-1]
		items = append(slices.Clip(items[:n-2]), last)
	}
	return strings.Join(items, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ordinal says 2 as "2nd".
func ordinal(n int) string {
	switch {
	case n%10 == 1 && n%100 != 11:
		return strconv.Itoa(n) + "st"
	case n%10 == 2 && n%100 != 12:
		return strconv.Itoa(n) + "nd"
	case n%10 == 3 && n%100 != 13:
		return strconv.Itoa(n) + "rd"
	}
	return strconv.Itoa(n) + "th"
}
