package schedule_test

import (
	"strings"
	"testing"

	"github.com/go-singleton/singleton/schedule"
)

func TestDescribe(t *testing.T) {
	table := []struct{ spec, want string }{
		// The common forms.
		{"* * * * *", "every minute"},
		{"*/5 * * * *", "every 5 minutes"},
		{"0-59/10 * * * *", "every 10 minutes"},
		{"0,30 * * * *", "every 30 minutes"},
		{"0 * * * *", "hourly"},
		{"@hourly", "hourly"},
		{"5 * * * *", "at 5 minutes past every hour"},
		{"1 * * * *", "at 1 minute past every hour"},
		{"0 */2 * * *", "every 2 hours"},
		{"15 */2 * * *", "every 2 hours from 00:15"},
		{"0 3 * * *", "daily at 03:00"},
		{"@daily", "daily at 00:00"},
		{"@midnight", "daily at 00:00"},
		{"30 9,17 * * *", "daily at 09:30 and 17:30"},
		{"15 */6 * * *", "daily at 00:15, 06:15, 12:15 and 18:15"},
		{"0 3 * * MON-FRI", "at 03:00, Monday to Friday"},
		{"0 0 * * SAT-SUN", "at 00:00, Saturday and Sunday"},
		{"0 0 * * 1,3,5", "at 00:00, Monday, Wednesday and Friday"},
		{"0 0 * * FRI-MON", "at 00:00, Friday to Monday"},
		{"0 0 * * 7", "at 00:00, every Sunday"},
		{"@weekly", "at 00:00, every Sunday"},
		{"@monthly", "at 00:00, on day 1 of the month"},
		{"@yearly", "at 00:00, on 1 January"},
		{"@annually", "at 00:00, on 1 January"},
		{"0 0 29 2 *", "at 00:00, on 29 February"},
		{"30 9-17 * * 1-5", "hourly from 09:30 to 17:30, Monday to Friday"},
		{"*/10 9-17 * * 1-5", "every 10 minutes from 09:00 to 17:50, Monday to Friday"},
		{"* 9 * * *", "every minute from 09:00 to 09:59"},
		{"0 22-2 * * *", "hourly from 22:00 to 02:00"},
		{"0 22-2 * * MON", "at 00:00, 01:00, 02:00, 22:00 and 23:00, every Monday"}, // not into Tuesday
		{"*/10 22-2 * * *", "every 10 minutes from 22:00 to 02:50"},
		{"*/10 22-2 * * MON", "every 10 minutes in hours 0 to 2, 22 and 23, every Monday"},

		// Minutes and hours without a rhythm.
		{"*/7 * * * *", "at every 7th minute from 0 to 56 of every hour"},
		{"5/15 * * * *", "at minutes 5, 20, 35 and 50 of every hour"},
		{"50-10 9 * * *", "at minutes 0 to 10 and 50 to 59 in hour 9"},
		{"17,23 * * * *", "at minutes 17 and 23 of every hour"},
		{"0,1,2,30 3,5 * * *", "at minutes 0 to 2 and 30 in hours 3 and 5"},
		{"*/10 3,5,9 * * *", "every 10 minutes in hours 3, 5 and 9"},
		{"* 3,5,9 * * *", "every minute in hours 3, 5 and 9"},
		{"*/35 11-13 * * *", "daily at 11:00, 11:35, 12:00, 12:35, 13:00 and 13:35"},
		{"0 */5 * * *", "daily at 00:00, 05:00, 10:00, 15:00 and 20:00"},
		{"* */3 * * *", "every minute in every 3rd hour from 0 to 21"},

		// Days.
		{"0 0 1,15 * *", "at 00:00, on days 1 and 15 of the month"},
		{"0 0 1-7 * *", "at 00:00, on days 1 to 7 of the month"},
		{"0 0 */2 * *", "at 00:00, on every 2nd day from 1 to 31 of the month"},
		{"0 0 28-3 * *", "at 00:00, on days 1 to 3 and 28 to 31 of the month"},
		{"0 0 L * *", "at 00:00, on the last day of the month"},
		{"0 0 L-1 * *", "at 00:00, on the day before the last of the month"},
		{"0 0 L-3 * *", "at 00:00, on the 3rd day before the last of the month"},
		{"0 0 15W * *", "at 00:00, on the working day nearest day 15 of the month"},
		{"0 0 LW * *", "at 00:00, on the last working day of the month"},
		{"0 0 1-5,15,L * *", "at 00:00, on days 1 to 5 and 15 and the last day of the month"},
		{"0 0 * * MON#5", "at 00:00, the 5th Monday of the month"},
		{"0 0 * * 1#1,1#3", "at 00:00, the 1st Monday of the month and the 3rd Monday of the month"},
		{"0 0 * * 0L", "at 00:00, the last Sunday of the month"},
		{"0 0 * * MON,FRIL", "at 00:00, every Monday and the last Friday of the month"},
		{"0 0 13 * FRI", "at 00:00, on day 13 of the month, or every Friday"},
		{"0 0 13 * MON-FRI", "at 00:00, on day 13 of the month, or on Monday to Friday"},
		{"0 0 13 * MON#1,5L", "at 00:00, on day 13 of the month, or the 1st Monday of the month and the last Friday of the month"},
		{"0 0 1-31 * 4", "daily at 00:00"},
		{"0 0 */2 * WED", "at 00:00, on every 2nd day from 1 to 31 of the month, if that is a Wednesday"},
		{"0 0 1-7 * */6", "at 00:00, on days 1 to 7 of the month, if that is a Saturday or a Sunday"},
		{"0 0 */28 2 SAT#5", "at 00:00, on days 1 and 29 of the month, if that is the 5th Saturday of the month, in February"},
		{"* * * * */3", "every minute, Wednesday, Saturday and Sunday"},

		// Months.
		{"0 0 * JUL-AUG *", "daily at 00:00, in July and August"},
		{"* * * JUL *", "every minute, in July"},
		{"0 0 1 */5 *", "at 00:00, on day 1 of the month, in January, June and November"},
		{"0 0 1 NOV-FEB *", "at 00:00, on day 1 of the month, in November to February"},
		{"0 2 29 2 0", "at 02:00, on day 29 of the month, or every Sunday, in February"},
		{"0 9 * 1-6 MON", "at 09:00, every Monday, in January to June"},

		// Seconds.
		{"* * * * * *", "every second"},
		{"*/10 * * * * *", "every 10 seconds"},
		{"0 */10 * * * *", "every 10 minutes"},
		{"15 * * * * *", "at second 15 of every minute"},
		{"15,45 * * * * *", "at seconds 15 and 45 of every minute"},
		{"*/7 * * * * *", "at every 7th second from 0 to 56 of every minute"},
		{"30 0 3 * * *", "daily at 03:00:30"},
		{"30 5 * * * *", "at second 30 of minute 5 of every hour"},
		{"30 0 */3 * * *", "every 3 hours from 00:00:30"},
		{"30 0 9-17 * * *", "hourly from 09:00:30 to 17:00:30"},
		{"* 30 2 * * *", "every second from 02:30 to 02:30:59"},
		{"*/10 * 9-17 * * *", "every 10 seconds from 09:00 to 17:59:50"},
		{"*/10 5,7 * * * *", "every 10 seconds in minutes 5 and 7 of every hour"},
		{"*/10 * 3,5 * * *", "every 10 seconds in hours 3 and 5"},
		{"15 * 9 * * *", "at second 15 of every minute in hour 9"},
		{"15,45 */5 9 * * *", "at seconds 15 and 45 of every 5th minute from 0 to 55 of hour 9"},

		// Intervals.
		{"@every 1s", "every second"},
		{"@every 90s", "every 90 seconds"},
		{"@every 5m", "every 5 minutes"},
		{"@every 1h", "every hour"},
		{"@every 1h30m", "every 1 hour 30 minutes"},
		{"@every 25h0m1s", "every 25 hours 1 second"},
	}
	for _, c := range table {
		// Only specs of six words without a prefix have seconds.
		opts := schedule.Options{Seconds: len(strings.Fields(c.spec)) == 6}
		e, err := schedule.Parse(c.spec, opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Describe(); got != c.want {
			t.Errorf("%q is\n    %q, want\n    %q", c.spec, got, c.want)
		}
	}
}
