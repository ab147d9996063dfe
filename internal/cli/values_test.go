package cli

import (
	"testing"
	"time"
)

func TestZonesAreIANANames(t *testing.T) {
	for _, name := range []string{"", "Local", "localtime", "../../etc/passwd", "Mars", "Europe/Berlin UTC"} {
		var loc *time.Location
		if err := (zone{&loc}).Set(name); err == nil {
			t.Errorf("%q is taken for a zone", name)
		}
	}
}

func TestDurationsAreWrittenAsPeopleDo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 15 * time.Second: "15s", 10 * time.Minute: "10m", 24 * time.Hour: "24h", 90 * time.Second: "1m30s",
		time.Hour + time.Second: "1h0m1s", 100 * time.Minute: "1h40m", -time.Hour: "-1h", 1500 * time.Millisecond: "1.5s",
	} {
		if got := compact(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
		if back, err := time.ParseDuration(want); err != nil || back != d {
			t.Errorf("%s means %v: %v", want, back, err)
		}
	}
}
