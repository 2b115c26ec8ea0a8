package session

import (
	"errors"
	"time"
)

// write writes one line about the call.
func (c *call) write(event string) error {
	if c.host.c.Audit == nil {
		return nil
	}
	e := c.event
	e.Event, e.Time = event, time.Now()
	return c.host.c.Audit.Write(e)
}

// refused writes down why a call wasn't run, and returns the reason.
func (c *call) refused(err error) error {
	c.event.Error, c.event.Failed = err.Error(), true
	if c.event.Decision == "" {
		c.event.Decision = "deny"
	}
	c.afterwards(c.write("refused"))
	return err
}

// done writes down how a call ended.
func (c *call) done(r *Result, err error) {
	event := "done"
	var lost *LostError
	if errors.As(err, &lost) {
		event = "lost"
	}
	c.event.Arguments = nil // they are in the first line
	c.event.Duration = float64(time.Since(c.begun).Microseconds()) / 1000
	if err != nil {
		c.event.Failed, c.event.Error = true, err.Error()
	}
	if r != nil {
		c.event.Failed = r.Failed
		c.event.Bytes = int64(len(r.Structured))
		if r.Structured == nil {
			for _, block := range r.Content {
				c.event.Bytes += int64(len(block))
			}
		}
		c.event.ExitCode = r.exitCode
	}
	c.afterwards(c.write(event))
}

// afterwards tells of a line that couldn't be written when there is nothing left
// to stop: to hold the result back would only make it be called again.
func (c *call) afterwards(err error) {
	if err != nil {
		c.host.warn("the end of a call isn't in the audit: %v", err)
	}
}
