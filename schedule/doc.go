// Package schedule parses cron expressions, answers when they fire, and says them in words. It is pure: it reads no
// clock, starts nothing, and does no I/O save that Parse loads the zone that a prefix names.
//
// # Expressions
//
// An expression has five fields, divided by blanks or tabs; with [Options.Seconds] six, seconds first. The number of
// fields is never guessed: six fields without the option are refused, because they have two readings.
//
//	field          values          names      besides
//	second         0-59            -
//	minute         0-59            -
//	hour           0-23            -
//	day of month   1-31            -          ?  L  L-3  15W  LW
//	month          1-12            JAN-DEC
//	day of week    0-7 (7 is 0)    SUN-SAT    ?  MON#2  5L
//
// A field is a list of entries divided by commas, each of them one of
//
//	entry    names
//	*        every value
//	5        one value, as a number or by its name, in capitals or not
//	1-5      a range; one that ends before it begins goes round: 22-2, SAT-SUN, NOV-FEB
//	*/7      every 7th value from the first
//	1-30/7   every 7th value of a range
//	5/15     every 15th value from 5 to the largest
//	L        day of month: the last
//	L-3      day of month: the 3rd before the last
//	15W      day of month: the day from Monday to Friday nearest the 15th, in the same month; in a month without
//	         that day none
//	LW       day of month: the last that is one from Monday to Friday
//	MON#2    day of week: the second Monday of the month, up to #5
//	5L       day of week: the last Friday of the month; also FRIL
//
// "?", alone in a day field, is "*". A step is counted within its field: "*/7" in the minutes fires at 0, 7, … 56, and
// again at 0.
//
// A day fits if the month and the two day fields do. When either of the day fields starts with "*", or is "?", both must
// fit; when neither does, one of them is enough: "0 0 13 * FRI" is every Friday and every 13th, and "0 0 */2 * WED" every
// Wednesday with an odd date.
//
// Descriptors stand for a whole expression, with Options.Seconds too:
//
//	@yearly, @annually    0 0 1 1 *
//	@monthly              0 0 1 * *
//	@weekly               0 0 * * 0
//	@daily, @midnight     0 0 * * *
//	@hourly               0 * * * *
//	@every 1h30m          the instants whose distance from 1970-01-01T00:00:00Z is a multiple of the duration
//
// "@every" takes what time.ParseDuration takes: whole seconds, at least one. Because its ticks hang on the Unix epoch and
// not on the time somebody began to ask, all machines, and all runs of a program, agree on them. Zones and daylight
// saving do not touch them.
//
// # Zones
//
// Fields are read in [Options.Zone], by default UTC. A first word "CRON_TZ=Europe/Berlin", or the same with "TZ=", names
// another, also before a descriptor. Only IANA names are taken: "Local" and "localtime" would mean another zone on each
// machine, "right/…" counts leap seconds. Programs for systems without a zone database import time/tzdata.
//
// # Daylight saving
//
// What happens when the clocks change follows cronie. A job of fixed times is one whose minute and hour fields both do
// not start with "*"; its times each count once a day:
//
//   - A time that the clocks skip fires right after the gap, once for all that were skipped. In New York, where they go
//     from 02:00 to 03:00 in March, "30 2 * * *" fires at 03:00 that day, and "15,45 2 * * *" also once, at 03:00.
//   - A time that comes twice fires the first time. In November, "30 1 * * *" fires at 01:30 EDT and not at 01:30 EST.
//
// Every other job follows the wall clock: it fires whenever the clock shows a time that its fields name. In March,
// "*/30 2 * * *" does not fire, and "0 */2 * * *" goes from 00:00 to 04:00; in November, "*/30 1 * * *" fires four
// times.
// So "0 0-23 * * *" and "0 * * * *" differ: the first has 24 fixed times, the second is hourly.
//
// The same holds for all changes of a zone's offset, whatever their size and reason: for half an hour on Lord Howe
// Island, and for 30 December 2011, which Samoa left out, where "0 9 30 12 *" fires as the 31st begins.
//
// # Refused
//
//	empty, or more than 1 KiB                   likely not an expression
//	line breaks, control characters, non-ASCII
//	four, six or seven fields                   see above; there is no field for years
//	values out of range, steps of 0, empty entries of a list, ranges or steps cut short
//	L, W, # and ? outside their fields
//	@reboot                                     names no time, and one of many machines has no boot to follow
//	@every below a second, or with a fraction of one
//	a zone that is not known
//	what never fires                            "0 0 30 2 *": ErrNever
//
// An expression also never fires when its zone's clocks skip all its times: "*/30 2 * 3 SUN#2" in New York, where that is
// the hour skipped each year. Every error is a [*SyntaxError] that says which field is wrong, where, and why.
//
// # Promises
//
// Next is strictly later than it was asked, Prev never later; both return whole seconds, agree with each other, and are
// exact for all instants of the years 1 to 9999. Neither allocates, and neither searches without an end: what fires once
// in 40 years is found in microseconds.
package schedule
