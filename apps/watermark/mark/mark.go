// Package mark makes the invisible mark: a pattern that is added to the brightness of every picture of a video, one grey level up or down.
//
// The pattern is made of chips, squares of some pixels. A tile of 64×64 chips repeats over the whole picture. A quarter of its chips, at secret places, are the pilot, which is
// the same in all copies of a campaign: it tells a detector how a copy was scaled, moved or flipped. The other chips are the codeword of a recipient, pseudo-random and secret.
// There are four codewords for each recipient, one after the other for 8 seconds each, so that the mean of many pictures shows none of them clearly.
//
// Everything follows from a secret of the installation, so nothing but the secret and the ids must be kept to read a mark years later. It has no state and calls nothing.
package mark

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"
)

// The sizes of the pattern. Changing one makes all marks unreadable that were made before.
const (
	Side      = 64          // chips on each side of a tile
	Chips     = Side * Side // chips of a tile
	PilotSize = Chips / 4   // chips of the pilot
	CodeSize  = Chips - PilotSize
	Phases    = 4               // codewords of a recipient
	Phase     = 8 * time.Second // how long each is shown
)

// Amplitude is how far the pattern changes the brightness, in grey levels of 256.
const Amplitude = 1

// A Key is the secret of a campaign.
type Key struct{ secret [32]byte }

// NewKey derives the key of a campaign from the secret of the installation, which must have at least 32 bytes.
func NewKey(secret []byte, campaign string) (Key, error) {
	if len(secret) < 32 {
		return Key{}, fmt.Errorf("the secret of the marks has %d bytes: it needs at least 32", len(secret))
	}
	return Key{derive(secret, "campaign", campaign)}, nil
}

func derive(secret []byte, purpose, name string) (out [32]byte) {
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "%s\x00%s", purpose, name)
	return [32]byte(h.Sum(nil))
}

// A Layout says which chips of a tile are the pilot, with their signs, and which are data.
type Layout struct {
	Pilot [Chips]int8      // 1 or -1 for chips of the pilot, 0 for others
	Data  [CodeSize]uint16 // the places of the codeword's chips, row by row
}

// Layout returns the layout of the campaign's tiles.
func (k Key) Layout() *Layout {
	random := rand.New(rand.NewChaCha8(derive(k.secret[:], "layout", "")))
	var places [Chips]uint16
	for i := range places {
		places[i] = uint16(i)
	}
	random.Shuffle(Chips, func(i, j int) { places[i], places[j] = places[j], places[i] })
	l := &Layout{}
	for i, place := range places[:PilotSize] {
		l.Pilot[place] = int8(1 - 2*(i&1)) // as many up as down
	}
	n := 0
	for place, sign := range l.Pilot {
		if sign == 0 {
			l.Data[n] = uint16(place)
			n++
		}
	}
	return l
}

// Codewords are the codewords of one recipient. A set bit is a chip that is brighter, in the order of Layout.Data.
type Codewords [Phases][CodeSize / 64]uint64

// Codewords returns the codewords of a recipient, named by the id of its token.
func (k Key) Codewords(token string) (c Codewords) {
	random := rand.NewChaCha8(derive(k.secret[:], "token", token))
	for phase := range c {
		for i := range c[phase] {
			c[phase][i] = random.Uint64()
		}
	}
	return c
}

// Sign returns the chip i of a codeword: 1 or -1.
func (c *Codewords) Sign(phase, i int) int8 { return int8(c[phase][i/64]>>(i%64)&1)*2 - 1 }

// Tile returns the signs of all chips of a tile in one phase, row by row.
func (l *Layout) Tile(c *Codewords, phase int) (tile [Chips]int8) {
	tile = l.Pilot
	for i, place := range l.Data {
		tile[place] = c.Sign(phase, i)
	}
	return tile
}

// ChipSize returns the side of a chip in pixels for pictures of a size: 8 at 1080 lines, so that a chip is as large in a copy of any resolution.
func ChipSize(width, height int) int { return max(2, (min(width, height)+67)/135) }
