package wire

import (
	"errors"
	"io"
	"sync"
	"time"
)

// linger is how long the end of a connection waits for a peer: to take the
// message that says why, or to say why it takes nothing any more.
const linger = 500 * time.Millisecond

// link is what both sides of a connection have in common.
type link struct {
	rwc    io.ReadWriteCloser
	server bool
	out    outbox
	done   chan struct{} // closed at the end, after err was set
	closed chan struct{} // closed when rwc is
	shut   sync.Once

	mu    sync.Mutex
	ended bool
	err   error
	calls map[uint32]*call
	last  uint32 // the highest id that was given
	late  int64  // what the other side may still send for calls that have ended
}

func (l *link) init(rwc io.ReadWriteCloser, server bool) {
	l.rwc, l.server = rwc, server
	l.done, l.closed = make(chan struct{}), make(chan struct{})
	l.calls = map[uint32]*call{}
	l.out.init(rwc)
}

// run starts to read and write.
func (l *link) run(message func([]byte) error) {
	go func() {
		err := l.out.run(l.rwc)
		if err == nil {
			l.close()
			return
		}
		// The other side has usually said why, and that is still to be read.
		l.out.close(nil)
		t := time.AfterFunc(linger, func() { l.end(err) })
		<-l.done
		t.Stop()
	}()
	go func() { l.end(l.read(message)) }()
}

// end ends the connection, once.
func (l *link) end(err error) {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return
	}
	l.ended, l.err = true, err
	calls := l.calls
	l.calls = nil
	l.mu.Unlock()

	var f *fault
	if l.server && errors.As(err, &f) {
		// The client is told why, if it listens.
		l.out.close(errorMessage(0, f.code, f.text))
		time.AfterFunc(linger, l.close)
	} else {
		l.out.close(nil)
		l.close()
	}
	close(l.done)
	for _, c := range calls {
		c.owner.lost(err)
	}
}

// close closes the connection beneath. It doesn't wait for that: what is
// beneath may be stuck as well.
func (l *link) close() {
	l.shut.Do(func() {
		go func() {
			_ = l.rwc.Close()
			close(l.closed)
		}()
	})
}

// Err is why the connection ended; nil before Done.
func (l *link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// waitClosed waits until the connection beneath is closed, but not for ever.
func (l *link) waitClosed() {
	t := time.NewTimer(2 * linger)
	defer t.Stop()
	select {
	case <-l.closed:
	case <-t.C:
	}
}

// receives reports whether this side reads the stream.
func (l *link) receives(stream byte) bool {
	if l.server {
		return stream == Stdin
	}
	return stream == Stdout || stream == Stderr
}

// find returns a call, nil where it has ended.
func (l *link) find(id uint32) (*call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id == 0 || id > l.last {
		return nil, faultf(CodeInvalidRequest, "a frame is for call %d, which was never made", id)
	}
	return l.calls[id], nil
}

// errorMessage makes the frame of an error's answer; id 0 is null.
func errorMessage(id uint32, code int, text string) []byte {
	m := newMessage()
	m.id(id)
	_ = m.value(`,"error":`, &Error{Code: code, Message: text})
	m.buf.WriteByte('}')
	return m.frame()
}
