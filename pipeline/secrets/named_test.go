package secrets

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
)

const (
	symbols = "!@#%^*-_=+"
	words24 = "orbit velvet canyon drift maple hollow timber spark glove raven pilot ocean cactus ribbon fossil magnet"
)

// named are ways in which a value is given to a name that says it is secret: in
// programs, settings, XML, headers and command lines.
func (m maker) named() map[string]string {
	words := strings.Fields(words24)
	m.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return map[string]string{
		"env": "export GITHUB_TOKEN=" + m.of(word, 40), "env cloudflare": "CLOUDFLARE_API_TOKEN=" + m.of(b64url, 40), "env hex": "DD_API_KEY=" + m.of(hexes, 32),
		"env short": "DB_PASS=" + m.of(word, 16), "env 0x": "ENCRYPTION_KEY=0x" + m.of(hexes, 64),
		"env 24": "VERCEL_TOKEN=" + m.of(word, 24), "env stage": "API_KEY_PROD=" + m.of(word, 32), "env laravel": "APP_KEY=base64:" + m.of(b64, 43) + "=",
		"docker": "ENV DB_PASSWORD " + m.of(word, 24), "yml": "password: " + m.of(word, 20), "yml token": "  api_token: " + m.of(word, 32),
		"yml rails": "secret_key_base: " + m.of(hexes, 128), "yml comment": "token: " + m.of(word, 24) + " # of the deployment",
		"properties": "spring.datasource.password=" + m.of(word, 32), "ini": "password = " + m.of(word, 24), "ini wireguard": "PrivateKey = " + m.of(b64, 43) + "=",
		"ruby": "SECRET_KEY='" + m.of(word, 40) + "'", "ruby hash": ":api_key => '" + m.of(word, 24) + "'", "xml": "<password>" + m.of(word, 24) + "</password>",
		"xml attribute": `<add key="ApiKey" value="` + m.of(word, 32) + `"/>`, "xml name": `<string name="client_secret">` + m.of(word, 32) + "</string>",
		"js": `const dbPassword = "` + m.of(word, 13) + m.of(symbols, 2) + `x9";`, "js object": "module.exports={secret:\"" + m.of(word, 32) + `"}`,
		"js template": "const apiToken = `" + m.of(word, 32) + "`", "js key": `const key = "` + m.of(word, 40) + `"`,
		"typescript": `private readonly apiKey: string = "` + m.of(word, 32) + `";`, "rust": `const API_KEY: &'static str = "` + m.of(word, 32) + `";`,
		"json hex": `{"api_key": "` + m.of(hexes, 32) + `"}`, "json in a string": `"{\"password\":\"` + m.of(word, 24) + `\"}"`,
		"call": `set("access_token", "` + m.of(word, 32) + `")`, "flag": "deploy --token " + m.of(word, 40) + " --now", "flag =": "x --client-secret=" + m.of(word, 40),
		"header": "curl -H 'X-Api-Key: " + m.of(word, 32) + "' https://x.company.net", "query": "https://x.company.net/?access_token=" + m.of(word, 32) + "&x=1",
		"kubernetes": "  password: " + base64.StdEncoding.EncodeToString([]byte(m.of(word, 24))),
		"django":     "SECRET_KEY = 'django-insecure-" + m.of(small+digits+"!@#$%^&*(-_=+)", 50) + "'",
		"pgpass":     "db.company.net:5432:*:admin:" + m.of(word, 17) + "7", "htpasswd": "bob:$apr1$" + m.of(word, 8) + "$" + m.of(word, 22),
		"htpasswd bcrypt": "bob:$2y$10$" + m.of(word, 53), "jwk": `{"kty":"RSA","n":"` + m.of(b64url, 342) + `","e":"AQAB","d":"` + m.of(b64url, 342) + `"}`,
		"jwk turned": `{"d":"` + m.of(b64url, 43) + `","crv":"P-256","kty":"EC"}`, "session": "aws_session_token=" + m.of(b64, 400),
		"cookie": "Cookie: lang=en; session=" + m.of(word, 64), "notion": "ntn_" + m.of(word, 46), "refresh": "1//0" + m.of(b64url, 60),
		"dropbox": "sl." + m.of(b64url, 130), "mnemonic": "mnemonic: " + strings.Join(words[:12], " "),
	}
}

// Covers S25: what a name says is secret, in quotes and without, when chance made it.
func TestNamed(t *testing.T) {
	t.Parallel()
	missed := map[string]int{}
	const seeds = 100
	for seed := range uint64(seeds) {
		m := maker{rand.New(rand.NewPCG(seed, 21))}
		for name, text := range m.named() {
			hits := New().Scan("f", []byte("first line\n"+text+"\n"))
			if len(hits) == 0 {
				missed[name]++
			} else if hits[0].Line != 2 {
				t.Errorf("%s: %+v; want line 2", name, hits)
			}
		}
	}
	for name, n := range missed { // chance also makes what looks like words
		if n > seeds/20 {
			t.Errorf("%s: %d of %d are not found", name, n, seeds)
		}
	}
}

// What is named like a secret and is none, and what identifies, refers or is made up.
func TestNamedPassedOver(t *testing.T) {
	t.Parallel()
	m := maker{rand.New(rand.NewPCG(3, 22))}
	mixed, hex32 := m.of(word, 32), m.of(hexes, 40)
	for _, text := range []string{
		// what refers to a value
		"password: ${DB_PASSWORD_2024_Main}", "TOKEN=$MY_TOKEN_FROM_Env42", "token = os.Getenv(\"GITHUB_TOKEN_V2_Main\")", "secret: process.env.Session1Secret2Key",
		"apiKey = config.getApiKey1FromVault2()", "password = {{ .Values.auth.password1 }}", "api_key: !secret weather_api_key_1", "token: &Token1Anchor2Default3",
		"password: vault:secret/data/app1#DbPass2", "secret = arn:aws:secretsmanager:eu-west-1:1234:secret:Db1-a8Xk2Q", "password=%(DB_Pass1word2)s",
		"password: ENC[AES256_GCM,data:" + mixed + ",iv:" + mixed + "]", "secret=this.state.user1Secret2Value", "passwordField=LoginForm2PasswordInput1",
		"token := NewToken1From2(Base64Url3)", "--token $GITHUB_TOKEN1", "password: string = getPassword1Value2;",
		// words, paths, addresses, identifiers
		"password = CorrectHorseBatteryStaple42", "password: 'BitnamiComplicatedPassword123!45678'", "token_secret = UserServiceTokenV2Handler",
		"PASSWORD=/run/secrets/db_Password1", "token: https://auth.company.net/Oauth2/Token1", "credentials: dev1.Team2@company.net",
		"api_key: 3f2504e0-4f89-41d3-9a0c-0305e82c3301", "token: 0x" + hex32, "password: 12345678901234567890123456789012", "token = 2024-11-26T09:38:32.123Z",
		"https://x.company.net/reset-password=" + m.of(hexes, 32),
		// hashes, and names of what is public
		"password_hash = " + m.of(hexes, 64), "'password' => '$2y$10$" + m.of(word, 53) + "',", "public_key = " + m.of(b64, 44), "csrf_token: " + mixed,
		"next_page_token: " + mixed, "publishableApiKey: " + mixed, "cacheKey = \"" + mixed + "\"", "secret_id: " + mixed, "token_sha256: " + m.of(hexes, 64),
		"integrity sha512-" + m.of(b64, 86) + "==", "revision = \"" + hex32 + "\"", "checksum = \"" + m.of(hexes, 64) + "\"", "key: " + mixed,
		"bypass=" + mixed, "compass: " + mixed, "encryptedData: " + mixed, "etag: " + mixed, "narHash = \"sha256-" + m.of(b64, 43) + "=\"",
		// what is made up
		"API_TOKEN=your-Api1-Token2-Goes-Here", "API_TOKEN=" + strings.Repeat("x", 32), "PASSWORD=example1Password2X", "SECRET_KEY=abcdefghijklmnopqrstuvwxyz012345",
		"mnemonic: abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about",
		"  password: " + base64.StdEncoding.EncodeToString([]byte("correct horse battery")), "Cookie: session=" + strings.Repeat("a", 64),
		`{"kty":"RSA","n":"` + m.of(b64url, 342) + `","e":"AQAB"}`, "ports: 8080:5432:tcp",
	} {
		if hits := New().Scan("f", []byte(text+"\n")); len(hits) > 0 {
			t.Errorf("Scan(%q) = %+v", text, hits)
		}
	}
}
