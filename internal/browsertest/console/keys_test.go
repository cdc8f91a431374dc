package console_test

import (
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
)

// palette presses Ctrl and K.
func palette(p *browser.Page) {
	p.PressControl("k")
	p.Until(`document.querySelector("#palette").open && document.activeElement.id === "palette-find"`)
}

// TestThePaletteGoesAnywhere: to a screen by a part of its name, to a job by its id, to an action of the page, and to a search.
func TestThePaletteGoesAnywhere(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	p := s.open("/overview")
	ready(p)
	palette(p)
	p.Press("\x1b")
	p.Until(`!document.querySelector("#palette").open`)
	palette(p)
	p.Press("dead")
	p.See("#palette-list [aria-selected=true]", "Dead letters")
	p.Press("\r")
	p.Until(`location.pathname === "/dead-letters"`)
	ready(p)
	palette(p)
	p.Press(s.Broken.String() + "\r")
	p.Until(`location.pathname === "/jobs/` + s.Broken.String() + `"`)
	ready(p)
	palette(p)
	p.Press("discard")
	p.See("#palette-list [aria-selected=true]", "Discard")
	p.Press("\r")
	p.See(":popover-open", "Discard this dead letter?")
	p.Press("\x1b")
	p.Until(`document.querySelector(":popover-open") === null`)
	palette(p)
	p.Press("kind:mail\r")
	p.Until(`location.pathname === "/jobs" && location.search.includes("mail")`)
	ready(p)
	if bad := p.Complaints(); len(bad) > 0 {
		t.Errorf("complaints: %v", bad)
	}
}

// TestEveryScreenHasItsChord: g and a letter lead to each screen of the menu, and the page of keys says so.
func TestEveryScreenHasItsChord(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	p := s.open("/settings")
	ready(p)
	menu := browser.Eval[[][]string](p, `[...document.querySelectorAll(".menu-side a[data-go]")].map((a) => [a.dataset.go, a.pathname, a.querySelector(".menu-name").textContent])`)
	if len(menu) < 16 {
		t.Fatalf("the menu has %d screens", len(menu))
	}
	p.Press("?")
	p.See("#keys", "Keyboard")
	for _, one := range menu {
		p.Until(`[...document.querySelectorAll("#keys div")].some((d) => [...d.querySelectorAll("kbd")].map((k) => k.textContent).join(" ") === "g ` + one[0] + `" && d.querySelector("dd").textContent === ` + quoted(one[2]) + `)`)
	}
	p.Press("g") // a dialog is open: shortcuts are off
	p.Press("j")
	p.Press("\x1b")
	p.SeeNot("#keys", "Keyboard")
	for _, one := range menu {
		p.Press("g")
		p.Press(one[0])
		p.Until(`location.pathname === ` + quoted(one[1]) + ` && document.readyState === "complete" && document.querySelector(".menu-side [aria-current]").dataset.go === ` + quoted(one[0]))
		ready(p)
	}
}

// TestKeysAreLeftToFields: what is typed into a field is text, not a shortcut.
func TestKeysAreLeftToFields(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	p := s.open("/jobs")
	ready(p)
	p.Press("/")
	p.Until(`document.activeElement.id === "find"`)
	p.Press("?gjptx")
	p.Until(`document.querySelector("#find").value === "?gjptx"`)
	if browser.Eval[bool](p, `document.querySelector("dialog[open]") !== null || location.pathname !== "/jobs" || document.querySelector("#live-word").textContent !== "Live"`) {
		t.Error("typing triggered a shortcut")
	}
}

// TestTheThemeGoesRound: light, dark and system, and the next page has the same theme.
func TestTheThemeGoesRound(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	p := s.open("/overview")
	ready(p)
	for _, theme := range []string{"light", "dark", ""} {
		p.Press("t")
		p.Until(`(document.documentElement.dataset.theme ?? "") === ` + quoted(theme))
		p.Reload()
		ready(p)
		p.Until(`(document.documentElement.dataset.theme ?? "") === ` + quoted(theme))
	}
}
