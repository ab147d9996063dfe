//go:build unix

package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/go-singleton/singleton/election"
)

// stint is how long a term certainly was valid.
type stint struct {
	replica     string
	token       uint64
	first, last moment
}

// recordSize is that of a stint in a file: token, first, last.
const recordSize = 3 * 8

// ask is how often a replica asks whether its term is valid.
const ask = time.Millisecond

// recorder keeps the stints of a replica in a file, so that they outlive it.
type recorder struct {
	file *os.File
	next int64 // offset
}

// watch asks whether the term is valid until it is not. It returns at once.
func (r *recorder) watch(term *election.Term) {
	at := r.next
	r.next += recordSize
	go func() {
		ticker := time.NewTicker(ask)
		defer ticker.Stop()
		s := stint{token: term.Token()}
		for ; ; <-ticker.C {
			before := now()
			if !term.Valid() {
				return
			}
			if s.first == 0 {
				s.first = now()
			}
			s.last = max(before, s.first)
			if _, err := r.file.WriteAt(s.record(), at); err != nil {
				panic(fmt.Sprintf("table: %v", err)) // nothing could be judged
			}
		}
	}()
}

func (s stint) record() []byte {
	b := binary.LittleEndian.AppendUint64(nil, s.token)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.first))
	return binary.LittleEndian.AppendUint64(b, uint64(s.last))
}

// readStints returns the stints of a replica; one that has not led yet has no file.
func readStints(file, replica string) ([]stint, error) {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []stint
	for piece := range slices.Chunk(data, recordSize) {
		if len(piece) < recordSize {
			break
		}
		s := stint{replica: replica, token: binary.LittleEndian.Uint64(piece)}
		s.first, s.last = moment(binary.LittleEndian.Uint64(piece[8:])), moment(binary.LittleEndian.Uint64(piece[16:]))
		if s.token != 0 { // else the term was over before the first question
			all = append(all, s)
		}
	}
	return all, nil
}
