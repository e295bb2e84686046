package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Requests that a lab accepts.
const (
	DoStatus    = "status"
	DoKill      = "kill"
	DoHeal      = "heal"
	DoPartition = "partition"
	DoStop      = "stop-service"
	DoStart     = "start-service"
)

// Request is a request to a lab: a line of JSON on its socket.
type Request struct {
	Do string `json:"do"`
	// Nodes are the machines on one side of a partition. Other requests name one node, or none for
	// all.
	Nodes   []string `json:"nodes,omitempty"`
	Service string   `json:"service,omitempty"`
}

// Reply is a line of JSON that answers a request.
type Reply struct {
	// Done describes the action, for people.
	Done   string  `json:"done,omitempty"`
	Status *Status `json:"status,omitempty"`
	Error  string  `json:"error,omitempty"`
	// Input is set if the request was wrong.
	Input bool `json:"input,omitempty"`
}

// inputError is an error in a request.
type inputError struct{ text string }

func (e *inputError) Error() string { return e.text }

// Input marks the error as the user's, for packages that do not import this one.
func (e *inputError) Input() {}

// Mistake returns an inputError.
func Mistake(format string, args ...any) error { return &inputError{fmt.Sprintf(format, args...)} }

// Ask sends a request to the lab and returns its reply. An error in the reply is returned as the
// error, an inputError if the request was wrong.
func (p Place) Ask(ctx context.Context, r Request) (*Reply, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", p.socket())
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return nil, p.absent(err)
	case err != nil:
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	reply := new(Reply)
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return nil, p.broken(err)
	}
	if err := json.NewDecoder(bufio.NewReader(conn)).Decode(reply); err != nil {
		return nil, p.broken(err)
	}
	switch {
	case reply.Input:
		return nil, &inputError{reply.Error}
	case reply.Error != "":
		return nil, errors.New(reply.Error)
	}
	return reply, nil
}

// absent returns the reason why nothing listens on the socket.
func (p Place) absent(err error) error {
	running, e := p.running()
	switch {
	case e != nil:
		return errors.Join(err, e)
	case running:
		return fmt.Errorf("the lab %s is being built or removed", p.Name)
	case p.Used():
		return fmt.Errorf("the lab %s does not run any more, and its process did not clean up: 'vipgen lab down' does", p.Name)
	default:
		return &NoLabError{p.Base, p.Name}
	}
}

func (p Place) broken(err error) error {
	return fmt.Errorf("the lab %s ended before it answered: %w", p.Name, err)
}
