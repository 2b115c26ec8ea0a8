// Package draft is a workshop.yaml in the making: what `init` proposes or imports, each
// line with its reason, and the text of it. It knows how values are quoted; what they
// mean is checked by the loader, before the text is written.
package draft
