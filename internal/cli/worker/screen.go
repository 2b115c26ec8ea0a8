package worker

import (
	"bytes"
	"slices"
)

// screen follows what a program writes to a terminal, as far as our lines
// need it: whether there is room for one. The sequences are those of ECMA-48
// and of xterm's "Control Sequences". The zero value is a terminal at the
// beginning of a line.
type screen struct {
	state     screenState
	params    []byte // of the control sequence so far
	alternate bool   // a program has the whole screen
	text      bool   // there is something in the line
	line      []byte // what makes the line, such as a prompt; see redraw
	lost      bool   // line is not all of it
}

type screenState uint8

const (
	onGround  screenState = iota
	inEscape              // after ESC
	inCharset             // after ESC and an intermediate byte
	inControl             // after CSI
	inString              // after OSC, DCS, SOS, PM or APC
)

// maxLine bounds the line that is kept, in bytes: longer ones may be more than one
// of the terminal's.
const maxLine = 512

// redraw returns what clears the line of the cursor, and what writes it again;
// nothing where the line isn't known.
func (s *screen) redraw() (clear, again string) {
	if s.lost || len(s.line) == 0 {
		return "", ""
	}
	return "\r\x1b[K", string(s.line)
}

// keep adds to the line.
func (s *screen) keep(b ...byte) {
	if s.lost = s.lost || len(s.line)+len(b) > maxLine; s.lost {
		s.line = s.line[:0]
		return
	}
	s.line = append(s.line, b...)
}

// newLine forgets the line.
func (s *screen) newLine() { s.line, s.lost = s.line[:0], false }

// maxControl bounds the parameters that are kept, in bytes.
const maxControl = 64

// busy reports whether our line would interrupt a full-screen program, or a
// sequence that isn't complete.
func (s *screen) busy() bool { return s.alternate || s.state != onGround }

// Write implements [io.Writer].
func (s *screen) Write(b []byte) (int, error) {
	for _, c := range b {
		s.take(c)
	}
	return len(b), nil
}

func (s *screen) take(c byte) {
	switch {
	case c == 0x1b: // ends whatever there was, a string too
		s.state = inEscape
	case c == 0x18 || c == 0x1a: // CAN and SUB
		s.state = onGround
	case s.state == inString:
		if c == '\a' {
			s.state = onGround
		}
	case c < ' ' || c == 0x7f: // works within sequences too
		s.text = s.text && c != '\n'
		switch c {
		case '\n':
			s.newLine()
		case '\r', '\b', '\t':
			s.keep(c)
		}
	case s.state == onGround:
		s.text = true
		s.keep(c)
	case s.state == inControl && c < 0x40:
		if len(s.params) < maxControl {
			s.params = append(s.params, c)
		}
	case s.state == inControl:
		s.state = onGround
		s.control(c)
	case c < 0x30:
		s.state = inCharset
	case s.state == inEscape && c == '[':
		s.state, s.params = inControl, s.params[:0]
	case s.state == inEscape && bytes.IndexByte([]byte("]PX^_"), c) >= 0:
		s.state = inString
	default:
		if s.state == inEscape && c == 'c' { // RIS, a full reset
			s.alternate, s.text = false, false
			s.newLine()
		}
		s.state = onGround
	}
}

// control is a complete control sequence: DECSET and DECRST lead to the
// alternate screen and back. Colours, and what moves and deletes within a line,
// belong to the line; what asks the terminal for something must not be repeated.
func (s *screen) control(final byte) {
	if bytes.IndexByte([]byte("mKCDGPX@"), final) >= 0 && len(s.params) < maxControl {
		s.keep(append(append([]byte("\x1b["), s.params...), final)...)
	} else if bytes.IndexByte([]byte("ABEFHJLMSTdfru"), final) >= 0 {
		s.lost = true // the cursor is in another line
	}
	modes, private := bytes.CutPrefix(s.params, []byte("?"))
	if !private || final != 'h' && final != 'l' {
		return
	}
	if slices.ContainsFunc(bytes.Split(modes, []byte(";")), func(mode []byte) bool {
		return slices.Contains([]string{"47", "1047", "1049"}, string(mode))
	}) {
		s.alternate = final == 'h'
		s.lost = true
	}
}
