package schedule_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

func Example() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	e, err := schedule.Parse("30 2 * * MON-FRI", schedule.Options{Zone: berlin})
	if err != nil {
		panic(err)
	}
	now := time.Date(2026, time.November, 29, 12, 0, 0, 0, berlin)
	fmt.Println(e.Describe())
	fmt.Println(e.Prev(now))
	fmt.Println(e.Next(now))
	// Output:
	// at 02:30, Monday to Friday
	// 2026-11-27 02:30:00 +0100 CET
	// 2026-11-30 02:30:00 +0100 CET
}

func ExampleSyntaxError() {
	_, err := schedule.Parse("0 25 * * *", schedule.Options{})
	if bad, ok := errors.AsType[*schedule.SyntaxError](err); ok {
		fmt.Printf("%s: %s\n", bad.Field, bad.Reason)
		fmt.Println(bad.Spec)
		fmt.Println(strings.Repeat(" ", bad.Offset) + strings.Repeat("^", bad.Length))
	}
	// Output:
	// hour: "25" is out of range 0-23
	// 0 25 * * *
	//   ^^
}

func ExampleExpr_Key() {
	daily := schedule.MustParse("@daily")
	spelled := schedule.MustParse("CRON_TZ=UTC  0 0 * * SUN-SAT")
	fmt.Println(daily.Key(), daily.Key() == spelled.Key())
	// Output: CRON_TZ=UTC 0 0 0 * * * true
}
