package daemon

import (
	"net/http/httptest"
	"time"
)

// CloseServer closes a server that has clients which come back at once. Its Close
// alone would wait for ever for a watch of one that came between closing the
// connections and closing the listener.
func CloseServer(s *httptest.Server) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.Close()
	}()
	for {
		s.CloseClientConnections()
		select {
		case <-closed:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
