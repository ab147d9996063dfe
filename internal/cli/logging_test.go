package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestDurationsInTheLog(t *testing.T) {
	for format, want := range map[string]string{
		"text": "level=INFO msg=\"run ended\" job=a took=5.1s kill_after=1m30s\n",
		"json": `"level":"INFO","msg":"run ended","job":"a","took_seconds":5.1,"kill_after_seconds":90}` + "\n",
	} {
		var out bytes.Buffer
		log := (&logging{format: format, level: "info"}).logger(&out).With("job", "a")
		log.Info("run ended", "took", 5100*time.Millisecond, "kill_after", 90*time.Second)
		if !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s: got %q, want %q", format, out.String(), want)
		}
	}
}
