package schedule

import "time"

const day = 86400 // seconds

// fields is what the fields of an expression say: the wall times that they name. Wall times are counted in seconds
// since 1970-01-01 00:00:00, as if the zone were UTC.
type fields struct {
	second, minute, hour, month set

	days     set  // of the month
	last     set  // days before the last of the month: bit 0 is L, bit 3 is L-3
	nearest  set  // the weekday, Monday to Friday, nearest a day: bit 15 is 15W, bit 0 is LW
	weekdays set  // 0 is Sunday
	nth      set  // bit 7*(n-1)+w is w#n, the nth weekday w of the month
	final    set  // bit w is wL, the last weekday w of the month
	either   bool // one of the two day fields is enough
}

const (
	allDays     = set(1<<32 - 1<<1)
	allWeekdays = set(1<<7 - 1)
)

// after returns the first wall time after wall that the fields name.
func (f *fields) after(wall int64) (int64, bool) {
	wall++
	date, clock := split(wall)
	y, m, d := time.Unix(wall, 0).UTC().Date()
	month := int(m)
	if f.month.has(month) {
		found, first := f.daysIn(y, month)
		if found.has(d) {
			if s := f.clockFrom(clock); s >= 0 {
				return date*day + int64(s), true
			}
		}
		if d := found.from(d + 1); d < 64 {
			return first + int64(d-1)*day + int64(f.clockFrom(0)), true
		}
	}
	for y <= 10000 {
		if month = f.month.from(month + 1); month > 12 {
			y, month = y+1, 0
			continue
		}
		if found, first := f.daysIn(y, month); found != 0 {
			return first + int64(found.from(0)-1)*day + int64(f.clockFrom(0)), true
		}
	}
	return 0, false
}

// upTo returns the last wall time, at or before wall, that the fields name.
func (f *fields) upTo(wall int64) (int64, bool) {
	date, clock := split(wall)
	y, m, d := time.Unix(wall, 0).UTC().Date()
	month := int(m)
	if f.month.has(month) {
		found, first := f.daysIn(y, month)
		if found.has(d) {
			if s := f.clockUpTo(clock); s >= 0 {
				return date*day + int64(s), true
			}
		}
		if d := found.upTo(d - 1); d >= 0 {
			return first + int64(d-1)*day + int64(f.clockUpTo(day-1)), true
		}
	}
	for y >= 0 {
		if month = f.month.upTo(month - 1); month < 1 {
			y, month = y-1, 13
			continue
		}
		if found, first := f.daysIn(y, month); found != 0 {
			return first + int64(found.upTo(31)-1)*day + int64(f.clockUpTo(day-1)), true
		}
	}
	return 0, false
}

// split returns the day of a wall time, counted from 1970-01-01, and the second of that day.
func split(wall int64) (date int64, clock int) {
	date = floorDiv(wall, day)
	return date, int(wall - date*day)
}

// clockFrom returns the first second of the day, from clock on, that the fields name, or -1.
func (f *fields) clockFrom(clock int) int {
	h, m, s := clock/3600, clock/60%60, clock%60
	if f.hour.has(h) {
		if f.minute.has(m) {
			if s := f.second.from(s); s < 60 {
				return h*3600 + m*60 + s
			}
		}
		if m := f.minute.from(m + 1); m < 60 {
			return h*3600 + m*60 + f.second.from(0)
		}
	}
	if h := f.hour.from(h + 1); h < 24 {
		return h*3600 + f.minute.from(0)*60 + f.second.from(0)
	}
	return -1
}

// clockUpTo returns the last second of the day, up to clock, that the fields name, or -1.
func (f *fields) clockUpTo(clock int) int {
	h, m, s := clock/3600, clock/60%60, clock%60
	if f.hour.has(h) {
		if f.minute.has(m) {
			if s := f.second.upTo(s); s >= 0 {
				return h*3600 + m*60 + s
			}
		}
		if m := f.minute.upTo(m - 1); m >= 0 {
			return h*3600 + m*60 + f.second.upTo(59)
		}
	}
	if h := f.hour.upTo(h - 1); h >= 0 {
		return h*3600 + f.minute.upTo(59)*60 + f.second.upTo(59)
	}
	return -1
}

// daysIn returns the days of a month that the two day fields name, and the wall time at which the month begins.
func (f *fields) daysIn(year, month int) (days set, begins int64) {
	first := time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	weekday, length := int(first.Weekday()), monthLength(year, month)
	byDay, byWeekday := f.byDay(weekday, length), f.byWeekday(weekday, length)
	if f.either {
		return byDay | byWeekday, first.Unix()
	}
	return byDay & byWeekday, first.Unix()
}

// byDay returns what the day-of-month field names in a month of that length whose 1st is that weekday.
func (f *fields) byDay(weekday, length int) set {
	days := f.days & between(1, length)
	for back := range f.last.all {
		if back < length {
			days |= 1 << (length - back)
		}
	}
	for d := range f.nearest.all {
		if d == 0 {
			d = length
			for isWeekend(weekday, d) {
				d--
			}
		}
		if d > length {
			continue
		}
		switch (weekday + d - 1) % 7 {
		case int(time.Saturday):
			if d--; d == 0 {
				d = 3
			}
		case int(time.Sunday):
			if d++; d > length {
				d -= 3
			}
		}
		days |= 1 << d
	}
	return days
}

// byWeekday returns what the day-of-week field names in a month of that length whose 1st is that weekday.
func (f *fields) byWeekday(weekday, length int) set {
	if f.weekdays == allWeekdays {
		return between(1, length)
	}
	week := (f.weekdays>>weekday | f.weekdays<<(7-weekday)) & allWeekdays // bit 0 is the 1st
	days := (week | week<<7 | week<<14 | week<<21 | week<<28) << 1 & between(1, length)
	for n := range f.nth.all {
		if d := 1 + (n%7-weekday+7)%7 + n/7*7; d <= length {
			days |= 1 << d
		}
	}
	for w := range f.final.all {
		days |= 1 << (length - (weekday+length-1-w+7)%7)
	}
	return days
}

func isWeekend(weekday, d int) bool {
	w := (weekday + d - 1) % 7
	return w == int(time.Saturday) || w == int(time.Sunday)
}

func monthLength(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// never reports that no day of the calendar is one that the fields name. Which days those are depends only on a year's
// length and first weekday, and 28 years without a gap in the leap years have all 14 kinds.
func (f *fields) never() bool {
	for year := 2000; year < 2028; year++ {
		for month := range f.month.all {
			if days, _ := f.daysIn(year, month); days != 0 {
				return false
			}
		}
	}
	return true
}
