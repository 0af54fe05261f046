package doctor_test

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/rationhq/ration/internal/dbtest"
	"github.com/rationhq/ration/pgstore/doctor"
)

// pooling says when a pooler's client gives its server back.
type pooling string

const (
	sessions     pooling = "sessions"
	transactions pooling = "transactions"
	statements   pooling = "statements"
)

// pooler is as little of one as shows in what its clients see: servers in a
// stack, and numbers of processes that are none of the server's.
type pooler struct {
	t      *testing.T
	mode   pooling
	server string

	mu      sync.Mutex
	idle    []*pgproto3.Frontend
	clients sync.WaitGroup
}

// startPooler gives the address of a pooler in front of a database.
func startPooler(t *testing.T, mode pooling, server string) string {
	t.Helper()
	p := &pooler{t: t, mode: mode, server: server}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.clients.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.clients.Go(func() {
				defer conn.Close()
				if err := p.serve(pgproto3.NewBackend(conn, conn)); err != nil {
					t.Error(err)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.clients.Wait()
	})
	return "postgres://somebody@" + listener.Addr().String() + "/any?sslmode=disable"
}

func (p *pooler) serve(client *pgproto3.Backend) error {
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return err
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	client.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 4_000_000_000, SecretKey: []byte("none")})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if err := client.Flush(); err != nil {
		return err
	}
	var server *pgproto3.Frontend
	for {
		message, err := client.Receive()
		query, isQuery := message.(*pgproto3.Query)
		if err != nil || !isQuery {
			p.giveBack(server)
			return nil //nolint:nilerr // the client has gone
		}
		if p.mode == statements && strings.HasPrefix(strings.ToLower(query.String), "begin") {
			client.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "08P01", Message: "transaction blocks not allowed in statement pooling mode"})
			client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			if err := client.Flush(); err != nil {
				return err
			}
			continue
		}
		if server == nil {
			if server, err = p.take(); err != nil {
				return err
			}
		}
		status, err := relay(client, server, query)
		if err != nil {
			return err
		}
		if status == 'I' && p.mode != sessions {
			p.giveBack(server)
			server = nil
		}
	}
}

// relay has a server answer a query, and gives the state of its transaction.
func relay(client *pgproto3.Backend, server *pgproto3.Frontend, query *pgproto3.Query) (status byte, err error) {
	server.Send(query)
	if err := server.Flush(); err != nil {
		return 0, err
	}
	for {
		answer, err := server.Receive()
		if err != nil {
			return 0, err
		}
		client.Send(answer)
		if err := client.Flush(); err != nil {
			return 0, err
		}
		if ready, done := answer.(*pgproto3.ReadyForQuery); done {
			return ready.TxStatus, nil
		}
	}
}

// take gives the server that was given back last, or a new one.
func (p *pooler) take() (*pgproto3.Frontend, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		server := p.idle[last]
		p.idle = p.idle[:last]
		return server, nil
	}
	conn, err := pgconn.Connect(p.t.Context(), p.server)
	if err != nil {
		return nil, err
	}
	hijacked, err := conn.Hijack()
	if err != nil {
		return nil, errors.Join(err, conn.Close(p.t.Context()))
	}
	p.t.Cleanup(func() { _ = hijacked.Conn.Close() })
	return hijacked.Frontend, nil
}

func (p *pooler) giveBack(server *pgproto3.Frontend) {
	if server == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, server)
}

func TestPoolersAreFound(t *testing.T) {
	t.Parallel()
	w := newWard(t, dbtest.New(t))
	before := w.examine(w.config())
	for mode, want := range map[pooling]struct {
		severity doctor.Severity
		says     string
	}{
		sessions:     {doctor.Note, "pools sessions"},
		transactions: {doctor.Fault, "pools transactions"},
		statements:   {doctor.Fault, "refuses transactions"},
	} {
		config := w.config()
		config.URL = startPooler(t, mode, w.db.OwnerURL())
		w.expect(config, before, "pooler", want.severity, want.says)
	}
}
