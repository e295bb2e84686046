package fakeapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Clients that hold their requests open and come back at once do not keep a
// server from being closed.
func TestClose(t *testing.T) {
	for range 20 {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}))
		ctx, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		var held sync.WaitGroup
		held.Add(4)
		for range 4 {
			clients.Go(func() {
				for first := true; ctx.Err() == nil; first = false {
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
					if err != nil {
						t.Error(err)
						return
					}
					resp, err := s.Client().Do(r)
					if first {
						held.Done()
					}
					if err == nil {
						resp.Body.Read(make([]byte, 1)) // until the connection goes
						resp.Body.Close()
					}
				}
			})
		}
		held.Wait()
		Close(s)
		cancel()
		clients.Wait()
	}
}
