package cli

import (
	"os"
	"strings"
	"time"
)

// localZone returns the time zone of this machine under its name where it can be found out: Go calls it "Local".
func localZone(lookup func(string) (string, bool)) *time.Location {
	name, ok := lookup("TZ")
	if !ok {
		target, err := os.Readlink("/etc/localtime")
		if err != nil {
			return time.Local
		}
		if _, name, ok = strings.Cut(target, "zoneinfo/"); !ok {
			return time.Local
		}
	}
	loc, err := time.LoadLocation(strings.TrimPrefix(name, ":")) // an empty TZ is UTC
	if err != nil {
		return time.Local
	}
	return loc
}

// footer says which zone the times of a page are in, and which flags change it.
func footer(zone *time.Location, flags string) string {
	switch name := zone.String(); name {
	case "UTC", "Etc/UTC":
		return "times are UTC; " + flags
	case "Local":
		return "times are local; --utc, " + flags
	default:
		return "times are local (" + name + "); --utc, " + flags
	}
}

// day says the day of t for a person who reads it at now: "today", "yesterday", "Mon 2 Jan", "2 Jan 2025".
func day(t, now time.Time) string {
	now = now.In(t.Location())
	switch date := t.Format(time.DateOnly); {
	case date == now.Format(time.DateOnly):
		return "today"
	case date == now.AddDate(0, 0, -1).Format(time.DateOnly):
		return "yesterday"
	case now.Sub(t).Abs() < 300*24*time.Hour:
		return t.Format("Mon 2 Jan")
	}
	return t.Format("2 Jan 2006")
}
