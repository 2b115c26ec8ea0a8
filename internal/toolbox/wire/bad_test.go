package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// TestBadClient: each of these ends the connection with an error that says
// what is wrong, here and to the client.
func TestBadClient(t *testing.T) {
	cat := request(1, "cat", "{}")
	window := bytes.Repeat(data(1, Stdin, strings.Repeat("x", MaxData)), Window/MaxData)
	for name, c := range map[string]struct {
		send []byte
		code int
		want string
	}{
		"unknown kind":         {header(3, 0), CodeParse, "unknown kind 3"},
		"text":                 {[]byte("GET / HTTP/1.1\r\n\r\n"), CodeParse, "unknown kind 71"},
		"large message":        {header(kindMessage, MaxMessage+1), CodeInvalidRequest, "larger than"},
		"empty message":        {msg(""), CodeParse, "not a JSON object"},
		"no JSON":              {msg("{"), CodeParse, "not valid JSON"},
		"behind the object":    {msg(`{"jsonrpc":"2.0","method":"x"} {}`), CodeParse, "not valid JSON"},
		"a batch":              {msg(`[{"jsonrpc":"2.0","id":1,"method":"echo"}]`), CodeInvalidRequest, "batch"},
		"a string":             {msg(`"x"`), CodeParse, "not a JSON object"},
		"UTF-8":                {msg("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"\xff\"]}"), CodeParse, "UTF-8"},
		"deep":                 {request(1, "echo", deep(MaxDepth)), CodeParse, "deeper than 64"},
		"very deep":            {request(1, "echo", strings.Repeat("[", 1<<20)), CodeParse, "deeper than 64"},
		"twice":                {msg(`{"jsonrpc":"2.0","id":1,"id":2,"method":"echo"}`), CodeInvalidRequest, `"id" twice`},
		"method twice":         {msg(`{"jsonrpc":"2.0","id":1,"method":"echo","method":"echo"}`), CodeInvalidRequest, `"method" twice`},
		"another key":          {msg(`{"jsonrpc":"2.0","id":1,"Method":"echo"}`), CodeInvalidRequest, "a key that"},
		"an escaped key":       {msg(`{"jsonrpc":"2.0","\u0069d":1,"method":"echo"}`), CodeInvalidRequest, "a key that"},
		"version 1":            {msg(`{"jsonrpc":"1.0","id":1,"method":"echo"}`), CodeInvalidRequest, `"2.0"`},
		"no version":           {msg(`{"id":1,"method":"echo"}`), CodeInvalidRequest, "not a request, notification or response"},
		"id 0":                 {request(0, "echo", "{}"), CodeInvalidRequest, "not a number from 1"},
		"id -1":                {request(-1, "echo", "{}"), CodeInvalidRequest, "not a number from 1"},
		"id too large":         {request(1<<32, "echo", "{}"), CodeInvalidRequest, "not a number from 1"},
		"id string":            {msg(`{"jsonrpc":"2.0","id":"1","method":"echo"}`), CodeInvalidRequest, "not a number from 1"},
		"id fraction":          {msg(`{"jsonrpc":"2.0","id":1.0,"method":"echo"}`), CodeInvalidRequest, "not a number from 1"},
		"id null":              {msg(`{"jsonrpc":"2.0","id":null,"method":"echo"}`), CodeInvalidRequest, "not a request, notification or response"},
		"method number":        {msg(`{"jsonrpc":"2.0","id":1,"method":1}`), CodeInvalidRequest, "method"},
		"method empty":         {request(1, "", "{}"), CodeInvalidRequest, "method"},
		"method escaped":       {msg(`{"jsonrpc":"2.0","id":1,"method":"\u0065cho"}`), CodeInvalidRequest, "method"},
		"method long":          {request(1, strings.Repeat("x", 255), "{}"), CodeInvalidRequest, "method"},
		"an answer":            {msg(`{"jsonrpc":"2.0","id":1,"result":1}`), CodeInvalidRequest, "asked nothing"},
		"both":                 {msg(`{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`), CodeInvalidRequest, "not a request, notification or response"},
		"id again":             {append(request(1, "echo", "{}"), request(1, "echo", "{}")...), CodeInvalidRequest, "ids must grow"},
		"id smaller":           {append(request(7, "echo", "{}"), request(6, "echo", "{}")...), CodeInvalidRequest, "ids must grow"},
		"short data":           {header(kindData, 4), CodeParse, "a data frame"},
		"long data":            {header(kindData, dataHead+MaxData+1), CodeParse, "a data frame"},
		"data for nobody":      {data(1, Stdin, "x"), CodeInvalidRequest, "never made"},
		"data for 0":           {append(cat, data(0, Stdin, "x")...), CodeInvalidRequest, "never made"},
		"data for the next":    {append(cat, data(2, Stdin, "x")...), CodeInvalidRequest, "never made"},
		"data on stdout":       {append(cat, data(1, Stdout, "x")...), CodeInvalidRequest, "isn't sent this way"},
		"data on stream 9":     {append(cat, data(1, 9, "x")...), CodeInvalidRequest, "isn't sent this way"},
		"data after the end":   {bytes.Join([][]byte{request(1, "hang", "{}"), data(1, Stdin, ""), data(1, Stdin, "x")}, nil), CodeInvalidRequest, "after its end"},
		"ended twice":          {bytes.Join([][]byte{request(1, "hang", "{}"), data(1, Stdin, ""), data(1, Stdin, "")}, nil), CodeInvalidRequest, "after its end"},
		"beyond credit":        {bytes.Join([][]byte{request(1, "hang", "{}"), window, data(1, Stdin, "x")}, nil), CodeInvalidRequest, "has credit for 0"},
		"short credit":         {header(kindCredit, 8), CodeParse, "a credit frame"},
		"long credit":          {header(kindCredit, 10), CodeParse, "a credit frame"},
		"credit for nobody":    {creditFrame(5, Stdout, 1), CodeInvalidRequest, "never made"},
		"credit for stdin":     {append(request(1, "hang", "{}"), creditFrame(1, Stdin, 1)...), CodeInvalidRequest, "isn't sent this way"},
		"credit for stream 3":  {append(request(1, "hang", "{}"), creditFrame(1, 3, 1)...), CodeInvalidRequest, "isn't sent this way"},
		"credit of 0":          {append(request(1, "hang", "{}"), creditFrame(1, Stdout, 0)...), CodeInvalidRequest, "beyond the window"},
		"too much credit":      {append(request(1, "hang", "{}"), creditFrame(1, Stdout, 1)...), CodeInvalidRequest, "beyond the window"},
		"credit that wraps":    {append(request(1, "hang", "{}"), creditFrame(1, Stdout, 1<<32-1)...), CodeInvalidRequest, "beyond the window"},
		"cancel of nobody":     {msg(`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":9}}`), CodeInvalidRequest, "never made"},
		"cancel without id":    {msg(`{"jsonrpc":"2.0","method":"$/cancel","params":{}}`), CodeInvalidRequest, "names no call"},
		"cancel of two":        {append(request(1, "hang", "{}"), msg(`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1,"id":1}}`)...), CodeInvalidRequest, "twice"},
		"a large notification": {msg(`{"jsonrpc":"2.0","method":"x","params":["` + strings.Repeat("x", MaxNotification) + `"]}`), CodeInvalidRequest, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			p, served := rawClient(t, methods)
			go p.Write(c.send) //nolint:errcheck // the server may end before it has all
			err := wait(t, served)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Serve: %v, want %q", err, c.want)
			}
			for {
				r := p.reply()
				if r.ID != nil {
					continue // of a good call before
				}
				if r.Error == nil || r.Error.Code != c.code || r.Error.Message != err.Error() {
					t.Errorf("the client was told %+v, want %d %v", r.Error, c.code, err)
				}
				return
			}
		})
	}
}

// TestRefused: these are answered, and the next call works.
func TestRefused(t *testing.T) {
	p, served := rawClient(t, methods)
	for i, c := range []struct {
		method, params string
		code           int
	}{
		{"echo", "1", CodeInvalidRequest},
		{"echo", "null", CodeInvalidRequest},
		{"echo", `"x"`, CodeInvalidRequest},
		{"nothing", "{}", CodeMethodNotFound},
		{"panic", "{}", CodeInternal},
		{"fail", "{}", CodeInternal},
	} {
		p.send(request(2*i+1, c.method, c.params))
		if r := p.reply(); r.ID == nil || *r.ID != uint32(2*i+1) || r.Error == nil || r.Error.Code != c.code {
			t.Errorf("%s %s: %+v", c.method, c.params, r)
		}
		// Notifications aren't answered, whatever they are; nor is what comes
		// late for a call.
		p.send(msg(`{"jsonrpc":"2.0","method":"$/unknown"}`), msg(`{"jsonrpc":"2.0","method":"echo","params":[1]}`),
			data(uint32(2*i+1), Stdin, "late"), data(uint32(2*i+1), Stdin, ""), creditFrame(uint32(2*i+1), Stdout, 5),
			msg(`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}`))
		p.send(msg(fmt.Sprintf(" { \"params\" : [ \"\\u00e9\" ] , \"method\":\"echo\",\"id\":%d,\"jsonrpc\":\"2.0\"}\n", 2*i+2)))
		if r := p.reply(); r.ID == nil || *r.ID != uint32(2*i+2) || string(r.Result) != `[ "\u00e9" ]` {
			t.Errorf("the next call: %+v %s", r, r.Result)
		}
	}
	p.Close()
	_ = wait(t, served)
}

// TestLate: what may come late is bounded by the credit there was.
func TestLate(t *testing.T) {
	p, served := rawClient(t, methods)
	p.send(request(1, "echo", "{}"))
	p.reply()
	go func() {
		for range 2 * Window / MaxData {
			if _, err := p.Write(data(1, Stdin, strings.Repeat("x", MaxData))); err != nil {
				return
			}
		}
	}()
	if err := wait(t, served); err == nil || !strings.Contains(err.Error(), "beyond its credit") {
		t.Errorf("Serve: %v", err)
	}
}

// TestBadServer: the same for the client's side, whose calls are lost then.
func TestBadServer(t *testing.T) {
	window := bytes.Repeat(data(1, Stdout, strings.Repeat("x", MaxData)), Window/MaxData)
	for name, c := range map[string]struct {
		send []byte
		want string
	}{
		"unknown kind":     {header(9, 0), "unknown kind 9"},
		"large message":    {header(kindMessage, 1<<32-1), "larger than"},
		"no JSON":          {msg("{]"), "not valid JSON"},
		"a batch":          {msg(`[]`), "batch"},
		"a call":           {msg(`{"jsonrpc":"2.0","id":1,"method":"x"}`), "only clients do"},
		"unasked":          {msg(`{"jsonrpc":"2.0","id":2,"result":1}`), "never made"},
		"both":             {msg(`{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`), "not a request, notification or response"},
		"neither":          {msg(`{"jsonrpc":"2.0","id":1}`), "not a request, notification or response"},
		"null":             {msg(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"nonsense"}}`), "nonsense"},
		"deep":             {msg(`{"jsonrpc":"2.0","id":1,"result":` + deep(64) + `}`), "deeper than 64"},
		"data on stdin":    {data(1, Stdin, "x"), "isn't sent this way"},
		"beyond credit":    {append(window, data(1, Stdout, "x")...), "has credit for 0"},
		"data for nobody":  {data(2, Stdout, "x"), "never made"},
		"too much credit":  {creditFrame(1, Stdin, 1), "beyond the window"},
		"credit of stdout": {creditFrame(1, Stdout, 1), "isn't sent this way"},
		"inside a header":  {header(0, 5)[:3], "inside a frame"},
		"inside a message": {msg("{}")[:6], "inside a frame"},
		"inside data":      {data(1, Stdout, "abc")[:12], "inside a frame"},
	} {
		t.Run(name, func(t *testing.T) {
			c2, p := rawServer(t)
			o, err := c2.Start(context.Background(), "x", nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _, _ = p.frame()
			p.send(c.send)
			_ = p.Close()
			var lost *LostError
			within(t, "Wait", func() { err = o.Wait(nil) })
			if !errors.As(err, &lost) || !lost.Sent || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Wait: %v, want %q", err, c.want)
			}
			if err := c2.Call(context.Background(), "x", nil, nil); !errors.As(err, &lost) || lost.Sent {
				t.Errorf("a call after the end: %v", err)
			}
			if err := c2.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Err: %v", err)
			}
		})
	}
}
