package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// The cost of a password: what OWASP's cheat sheet recommends for argon2id with 19 MiB. The stored text names its cost, so a later change keeps old passwords valid.
const (
	argonTime    = 2
	argonMemory  = 19 << 10 // KiB
	argonThreads = 1
	argonKey     = 32
	argonSalt    = 16

	hashesAtOnce = 4

	minPassword = 10  // characters
	maxPassword = 200 // bytes: longer ones would cost more than they add
)

// checkPassword refuses a password that is too short or too long.
func checkPassword(text string) error {
	switch {
	case utf8.RuneCountInString(text) < minPassword:
		return fmt.Errorf("%w: the password needs at least %d characters", ErrInvalid, minPassword)
	case len(text) > maxPassword || !utf8.ValidString(text):
		return fmt.Errorf("%w: the password may have at most %d bytes", ErrInvalid, maxPassword)
	}
	return nil
}

// hashPassword returns a password as it is stored, in the PHC format.
func (s *Service) hashPassword(ctx context.Context, text string) (string, error) {
	leave, err := s.enterHashing(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // it never fails
	sum := argon2.IDKey([]byte(text), salt, argonTime, argonMemory, argonThreads, argonKey)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads, encode(salt), encode(sum)), nil
}

func (s *Service) enterHashing(ctx context.Context) (leave func(), err error) {
	select {
	case s.hashing <- struct{}{}:
		return func() { <-s.hashing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// verifyPassword reports whether a password is the stored one. An empty stored text takes as long as any other and is never right.
func (s *Service) verifyPassword(ctx context.Context, stored, text string) (bool, error) {
	leave, err := s.enterHashing(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	p, err := parsePassword(stored)
	if err != nil {
		if stored != "" {
			return false, err
		}
		p = storedPassword{memory: argonMemory, time: argonTime, threads: argonThreads, salt: make([]byte, argonSalt), sum: make([]byte, argonKey)}
	}
	if len(text) > maxPassword {
		text = ""
	}
	sum := argon2.IDKey([]byte(text), p.salt, p.time, p.memory, p.threads, uint32(len(p.sum)))
	return subtle.ConstantTimeCompare(sum, p.sum) == 1 && stored != "", nil
}

type storedPassword struct {
	memory, time uint32
	threads      uint8
	salt, sum    []byte
}

var errStored = errors.New("account: a stored password cannot be read")

func parsePassword(stored string) (p storedPassword, err error) {
	part := strings.Split(stored, "$")
	if len(part) != 6 || part[1] != "argon2id" {
		return p, errStored
	}
	var version int
	if _, err := fmt.Sscanf(part[2], "v=%d", &version); err != nil || version != argon2.Version {
		return p, errStored
	}
	if _, err := fmt.Sscanf(part[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.threads); err != nil {
		return p, errStored
	}
	if p.salt, err = base64.RawStdEncoding.DecodeString(part[4]); err != nil {
		return p, errStored
	}
	if p.sum, err = base64.RawStdEncoding.DecodeString(part[5]); err != nil || len(p.sum) < argonSalt {
		return p, errStored
	}
	return p, nil
}
