package redisclient

import (
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/prelude.lua
var prelude string

// Load returns the script that is made of what all have in common and of the named parts, in the folder lua of sources.
func Load(sources embed.FS, parts ...string) *redis.Script {
	var text strings.Builder
	text.WriteString(prelude)
	for _, part := range parts {
		b, err := sources.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic(err) // embedded: it is there or the program does not build
		}
		text.Write(b)
	}
	return redis.NewScript(text.String())
}
