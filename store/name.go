package store

import (
	"fmt"
	"regexp"
	"strings"
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// CheckName returns an error unless name can name a group, replica or job: 1 to 128 letters, digits, dots, underscores
// and hyphens, the first a letter or digit. Anything else could collide with the structure of a key, scatter a group
// over the slots of a Redis Cluster, or reach a pattern or a log. what is the word for the error, such as "group".
func CheckName(what, name string) error {
	if nameForm.MatchString(name) {
		return nil
	}
	return Permanent(fmt.Sprintf("store: %s name %.140q is not valid: use 1 to 128 letters, digits, '.', '_' and '-', starting with a letter or digit", what, name), nil)
}

// CheckBucket returns an error unless bucket is a lower-case word, alone ("job") or before a slash and a name
// ("history/report").
func CheckBucket(bucket string) error {
	word, name, split := strings.Cut(bucket, "/")
	for _, c := range word {
		if c < 'a' || c > 'z' {
			word = ""
		}
	}
	if word == "" || len(word) > 32 {
		return Permanent(fmt.Sprintf("store: bucket %.140q is not a lower-case word, or a word, a slash and a name", bucket), nil)
	}
	if split {
		return CheckName("bucket", name)
	}
	return nil
}
