//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

const tokenHeader = "Fencing-Token"

// service takes payments over HTTP. It remembers the highest token and refuses lower ones.
type service struct {
	mu    sync.Mutex
	token uint64
	payer string
}

// ServeHTTP takes a payment; the body says who pays.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, err := strconv.ParseUint(r.Header.Get(tokenHeader), 10, 64)
	if err != nil {
		http.Error(w, tokenHeader+" is missing", http.StatusPreconditionRequired)
		return
	}
	who, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 100))
	if err != nil {
		http.Error(w, "too long a name", http.StatusRequestEntityTooLarge)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if token < s.token { // check and write under one lock: as one step
		http.Error(w, fmt.Sprint(s.token), http.StatusPreconditionFailed)
		return
	}
	s.token, s.payer = token, string(who)
	w.WriteHeader(http.StatusNoContent)
}

func (s *service) paidBy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.payer
}

// post pays at a service, or returns errFenced when somebody with a higher token has paid.
func post(ctx context.Context, url string, token uint64, who string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(who))
	if err != nil {
		return err
	}
	req.Header.Set(tokenHeader, strconv.FormatUint(token, 10))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNoContent:
		return nil
	case http.StatusPreconditionFailed:
		return fmt.Errorf("%s: %w", resp.Status, errFenced)
	}
	return fmt.Errorf("the service answers %s", resp.Status)
}
