package cli

import (
	"strings"
	"testing"
)

func TestURLsInParts(t *testing.T) {
	authority := newAuthority(t, t.TempDir())
	file := write(t, "password", canary+"\n")
	files := "?ca=" + authority.CA + "&cert=" + authority.Certificate + "&key=" + authority.Key
	for raw, want := range map[string]struct {
		hosts, user, path, options, name string
		tls                              bool
	}{
		"x://h":                            {"h", "", "", "", "x://h", false},
		"x://a,b:1,[::]":                   {"a b:1 [::]", "", "", "", "x://a,b:1,[::]", false},
		"x://u:" + canary + "@a,b/c/d?e=f": {"a b", "u", "/c/d", "e=f", "x://u:xxxxx@a,b/c/d", false},
		"x://u:@h?password_file=" + file:   {"h", "u", "", "", "x://u:xxxxx@h", false},
		"xs://h":                           {"h", "", "", "", "xs://h", true},
		"xs://u:" + canary + "@h/" + files + "&e=f": {"h", "u", "/", "e=f", "xs://u:xxxxx@h/", true},
	} {
		u, err := readURL(raw, "xs")
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if strings.Join(u.Hosts, " ") != want.hosts || u.User != want.user || u.Path != want.path || u.Options.Encode() != want.options ||
			u.Name != want.name || (u.TLS != nil) != want.tls || u.Password != map[bool]string{true: canary}[want.user != ""] {
			t.Errorf("%s: %+v", raw, u)
		}
		if certificate := u.TLS != nil && u.TLS.GetClientCertificate != nil; certificate != strings.Contains(raw, "cert=") {
			t.Errorf("%s: presents a certificate is %v", raw, certificate)
		}
	}
}

// TestSEC7BadURLsInPartsAreNotRepeated gives URLs whose password would show if any part of them was.
func TestSEC7BadURLsInPartsAreNotRepeated(t *testing.T) {
	authority := newAuthority(t, t.TempDir())
	none := t.TempDir() + "/none"
	for raw, want := range map[string]string{
		"x://u:12/" + canary + "@h":                                 "percent-encode",
		"x://u:12#" + canary + "@h":                                 "percent-encode",
		"x://u:%zz" + canary + "@h":                                 "percent-encode",
		"x://u:" + canary + "@h#x":                                  "percent-encode",
		"x://" + canary + "@h":                                      "a colon and a password",
		"x://:" + canary + "@h":                                     "no user",
		"x://u:@h":                                                  "a user and no password",
		"x://u:" + canary + "@h?password_file=/p":                   "give one of them",
		"x://h?password_file=/p":                                    "no user",
		"x://u:@h?password_file=" + none:                            "password_file: open",
		"x://u:@h?password_file=" + write(t, "empty", "\n"):         "is empty",
		"x://h?password_file=":                                      "password_file without a file",
		"x://h?ca=" + authority.CA:                                  "belong to TLS",
		"xs://h?ca=":                                                "ca without a file",
		"xs://h?ca=" + none:                                         "ca: open",
		"xs://h?ca=" + write(t, "ca", "no"):                         "holds no certificate",
		"xs://h?cert=" + authority.Certificate:                      "one of cert and key",
		"xs://h?cert=" + authority.CA + "&key=" + authority.Key:     "cert and key: ",
		"xs://u:" + canary + "@h?ca=" + none + "&x=" + canary + "y": "ca: open",
	} {
		_, err := readURL(raw, "xs")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", raw, err, want)
			continue
		}
		checkSecret(t, raw, err.Error())
	}
}
