package align

import (
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// choice is a matter of which one can be had: what is used excludes the others.
type choice struct {
	kind    string
	options []option
	context *lazyregexp.Regexp // one of these words must be there; nil: none
	not     *lazyregexp.Regexp // and none of these
	deed    *lazyregexp.Regexp // what says that it is done, rather than spoken of
	rule    *lazyregexp.Regexp // what makes a rule of a sentence, besides "only" and the like
	whole   bool               // it is one for the whole repository: two that differ exclude each other
	noun    *lazyregexp.Regexp // the begin of a sentence such as "The database is PostgreSQL", which declares it; nil: none does
	says    *lazyregexp.Regexp // what declares it in other words
	strict  bool               // only what is declared counts: its words are those of other matters, too
	named   *lazyregexp.Regexp // the name of what it is said of, in the first group: two of one name exclude each other
}

// option is one that can be had. Of a name such as "LDAP/password" all are had with it.
type option struct {
	name string
	word *lazyregexp.Regexp
	all  *lazyregexp.Regexp // it and nothing else of weight
}

func opt(name, expr string) option {
	return option{name, lazyregexp.New(expr), lazyregexp.New(`(?i)^(?:` + expr + `)` + behindOption)}
}

// behindOption is what may stand behind an option that a sentence declares: "PostgreSQL 16
// only", "REST API", "JWT, as before".
const behindOption = `(?:[ -](?:v?\d[\w.]*\+?|only|apis?|sessions?|tokens?|strings?|keys?|cookies?|server|database|cluster|everywhere|throughout|` +
	`log-?ins?|endpoints?|links?|timestamps?|licen[cs]e|names|(?:for )?(?:all|every)\w*(?: \w+)?|with \w+|through \w+|\([^)]*\)))*(?:[,;:(/].*)?$`

// only makes a rule of a sentence, and notRule does not: "only touch the REST handlers".
var only = lazyregexp.New(`(?i)\b(?:only|exclusively|always|without exception|everything|solely|nothing but|nur|immer|` +
	`ausschließlich|uniquement|seulement|toujours|solamente|siempre|únicamente)\b`)

var (
	notRule = lazyregexp.New(`(?i)\bonly (?:touch\w*|chang\w*|affect\w*|when|if|in|once|after|where|need\w*|add\w*|the|` +
		`this|those|for)\b`)
	must = lazyregexp.New(`(?i)\b(?:must|have to|only|allowed)\b`)
)

var choices = []choice{
	{kind: "api", noun: saying(`api style|style of (?:the|our) api|api type|(?:public|http|web) api|api|apis`),
		options: []option{opt("REST", `\bREST(?:ful)?\b`),
			opt("GraphQL", `(?i)\bgraphql\b`), opt("gRPC", `(?i)\bgrpc\b`), opt("SOAP", `\bSOAP\b`)},
		context: lazyregexp.New(`\b(?:apis?|interfaces?|endpoints?|services?|clients?|over|via|expose|offers?|routes?|` +
			`schnittstellen?)\b`),
		rule: lazyregexp.New(`^(?:we )?use (?:rest|graphql|grpc|soap) for (?:the|our|all|every) apis?$`),
		deed: lazyregexp.New(`\b(?:expos\w+|offer\w*|serv(?:e|es|ed|ing)|provid\w+|publish\w*|implement\w*|build|add|write|` +
			`switch|move|bereitstell\w*)\b`),
		named: lazyregexp.New(`\b([a-z][\w-]+) (?:api|service|interface|endpoints?)\b`)},
	{kind: "auth", noun: saying(`authentication|auth|login|sessions?`),
		options: []option{opt("session cookies", `(?i)\bsession[- ]cookies?\b|`+
			`\bcookie[- ](?:based )?sessions?\b|\bserver[- ]side sessions?\b`),
			opt("JWT", `(?i)\bjwts?\b|\bjson web tokens?\b`), opt("basic auth", `(?i)\bbasic auth\w*\b`), opt("API keys", `(?i)\bapi[- ]keys?\b`)},
		deed: lazyregexp.New(`\b(?:use|uses|get|gets|keep|keeps|store|stores|set|sets|send|sends|issue|issues|log ?in|login|` +
			`sign\w*|authenticat\w*|anmeld\w*)\b`)},
	{kind: "login", strict: true, noun: saying(`(?:user )?log-?in|sign-?in|sign-?on|authentication|auth(?: method)?`),
		says: lazyregexp.New(`^(?:all )?(?:users?|staff|customers?|members?|people|employees|clients?|visitors|admins?) (?:must |have to |always )?` +
			`(?:log ?in|sign in|authenticate)s? (?:only )?(?:with|by|via|through|using|against) (?:an? |the |their )?` +
			`(?:(?:e-?mail(?: address)?|user ?name) and (?:an? |the |their )?)?`),
		not: lazyregexp.New(`\b(?:also|additionally|as well|too|optional\w*|either|or|second|2fa|mfa|reset\w*)\b`),
		options: []option{opt("OAuth", `(?i)\boauth\b|\boidc\b|\bopenid connect\b`), opt("SAML", `(?i)\bsaml\b`),
			opt("LDAP/password", `(?i)\bldap\b|\bactive directory\b`), opt("password", `(?i)\bpasswords?\b|\bbasic auth\w*\b`),
			opt("magic links", `(?i)\bmagic links?\b`), opt("passkeys", `(?i)\bpasskeys?\b`)}},
	{kind: "store", noun: saying(`database(?: engine)?|data ?base system|data ?store|data storage|storage|persistence|persistence layer|dbms`),
		options: []option{opt("SQLite", `(?i)\bsqlite\b`),
			opt("PostgreSQL", `(?i)\bpostgres(?:ql)?\b`), opt("MySQL", `(?i)\b(?:mysql|mariadb)\b`),
			opt("MongoDB", `(?i)\bmongo(?:db)?\b`), opt("DynamoDB", `(?i)\bdynamodb\b`), opt("SQL Server", `(?i)\bsql server\b`)},
		not: lazyregexp.New(`\b(?:in[- ]memory|import\w*|export\w*|migrat\w+|dump|port \d+|convert\w*|syntax|dialect|compatible)\b`),
		deed: lazyregexp.New(`\b(?:stor(?:e|es|ed|ing)|sav(?:e|es|ed|ing)|keep|keeps|persist\w*|writ(?:e|es|ten)|use|uses|` +
			`put|puts|add|set up|switch|move|speicher\w*)\b`),
		says: lazyregexp.New(`^use \w+(?: as (?:the|our) database)?$|^we (?:store|keep|save|persist) (?:all |our |the )?data in \w+$|` +
			`^(?:all |our |the )?data (?:is|are) (?:stored|kept|saved|persisted) in \w+$|^\w+(?: server)? is (?:the|our) (?:only |primary |main )?database$`),
		rule: lazyregexp.New(`^(?:we )?use \w+(?: server)?(?: for (?:all\b.*|everything)| as (?:the|our) (?:only |main |primary )?database)?$|^\w+(?: server)? is (?:the|our) |\bour only database\b|` +
			`^all data (?:is|are) (?:stored|kept|saved)\b`), // "for orders" makes it one of several
		named: lazyregexp.New(`\b([a-z][\w-]+) (?:is|are|stays?|lives?) (?:stored|kept|saved|persisted|in)\b`)},
	{kind: "json names", noun: saying(`(?:json |api )?(?:keys|fields|field names|property names|properties)(?: in (?:the )?(?:json|api))?`),
		options: []option{opt("snake_case", `(?i)\bsnake[_ -]?case\b`), opt("camelCase", `(?i)\bcamel[_ -]?case\b`),
			opt("kebab-case", `(?i)\bkebab[_ -]?case\b`)},
		context: lazyregexp.New(`\b(?:json|keys?|fields?|payloads?|responses?|bodies|body)\b`),
		not: lazyregexp.New(`\b(?:columns?|tables?|database|sql|python|variables?|functions?|methods?|css|files?|env\w*|` +
			`mapped|convert\w*|query string)\b`), whole: true},
	{kind: "dates", noun: saying(`(?:dates|times|timestamps|date format|dates and times)(?: in (?:the )?(?:json|api|responses))?`),
		options: []option{opt("ISO 8601", `(?i)\biso[- ]?8601\b|\brfc[- ]?3339\b`),
			opt("Unix time", `(?i)\bunix[- ](?:time(?:stamps?)?|epoch|seconds|milliseconds)\b|\bepoch (?:seconds|time|`+
				`milli\w+)\b|\b(?:milli)?seconds since the epoch\b`)},
		context: lazyregexp.New(`\b(?:payloads?|json|apis?|responses?|events?|fields?|messages?|body|carries|returns?|returned)\b`),
		not:     lazyregexp.New(`\b(?:compar\w+|columns?|database|header|convert\w*|pars\w+|filenames?)\b`), whole: true},
	{kind: "time zone", noun: saying(`time ?zone|times|timestamps`),
		options: []option{opt("UTC", `(?i)\butc\b`), opt("local time", `(?i)\blocal time(?:s|stamps?|`+
			` ?zone)?\b|\b(?:Europe|America|Asia|Africa|Australia)/[A-Z]\w+|\bserver's time ?zone\b|\bortszeit\b`)},
		context: lazyregexp.New(`\b(?:stor(?:e|es|ed)|sav(?:e|es|ed)|persist\w*|writ(?:e|es|ten)|record\w*|database|speicher\w*)\b|` +
			`\b(?:times|timestamps|dates) are (?:always )?(?:(?:kept )?in )?(?:utc|[a-z]+/[a-z]+)$|\butc everywhere\b`),
		not: lazyregexp.New(`\b(?:shows?|shown|display\w*|render\w*|format\w*|print\w*|reader|convert\w*)\b`), whole: true},
	{kind: "package manager", noun: saying(`package manager`),
		options: []option{opt("pnpm", `\bpnpm\b`), opt("yarn", `\byarn\b`), opt("npm", `(?:^|`+
			`[^\w/])npm\b`), opt("bun", `\bbun (?:install|add|run)\b`)},
		not: lazyregexp.New(`\bnpm (?:registry|packages?|account|token|audit|org\w*)\b|\b(?:to|on|from|via) npm\b|\bnpm install (?:-g|--global)\b|` +
			`\bnpm run \S+ is (?:called|run) by\b|\bpublish\w*\b`),
		deed: lazyregexp.New(`\b(?:use|uses|run|runs|install|installs|call|add|execute)\b`), whole: true},
	{kind: "python packages", noun: saying(`dependencies|package manager|packages`),
		options: []option{opt("poetry", `(?i)\bpoetry\b`), opt("uv", `\buv (?:add|sync|pip|run|`+
			`lock)\b|\x60uv\x60`), opt("pipenv", `(?i)\bpipenv\b`)},
		deed: lazyregexp.New(`\b(?:use|uses|run|runs|install|installs|call|add|manag\w+|with)\b`), whole: true},
	{kind: "licence", noun: saying(`licen[cs]e`),
		options: []option{opt("MIT", `\bMIT\b`), opt("BSD", `\bBSD\b`), opt("Apache", `\bApache\b`), opt("ISC", `\bISC\b`),
			opt("MPL", `\bMPL\b`),
			opt("LGPL", `\bLGPL`), opt("AGPL/GPL", `\bAGPL`), opt("GPL", `\bGPL|(?i)\bcopyleft\b`)},
		context: lazyregexp.New(`\b(?:dependenc\w+|licen[cs]\w*|librar\w+|packages?|lizenz\w*|bibliothek\w*|under|gpl|copyleft)\b`),
		not:     lazyregexp.New(`\b(?:dual|either)\b`), rule: must,
		deed: lazyregexp.New(`\b(?:(?:use|add|import|bring|pull|depend|vendor)s?|nimm|verwende|licen[cs]ed under|(?:is|are) under)\b|` +
			`\b(?:bundle|embed|include|ship)s? (?:the |an? )?\S+ licen[cs]ed\b`)},
}

func (c *choice) read(s *sentence) []Fact {
	says := c.declares(s)
	if !says && (c.strict || c.context != nil && !c.context.MatchString(s.low)) || c.not != nil && c.not.MatchString(s.low) {
		return nil
	}
	f := Fact{Key: c.kind, rule: only.MatchString(s.low) && !notRule.MatchString(s.low), use: c.deed == nil || c.deed.MatchString(s.low)}
	f.rule = f.rule || c.rule != nil && c.rule.MatchString(s.low)
	says = c.stances(s, &f) == 1 && says
	if c.strict && !says {
		return nil
	}
	if len(f.has)+len(f.not) == 0 {
		return nil
	}
	if c.named != nil {
		for _, m := range c.named.FindAllStringSubmatch(s.low, -1) {
			if !slices.Contains(strings.Fields("the a an our its rest graphql grpc soap public internal data which that it web"), m[1]) {
				f.about = append(f.about, m[1])
			}
		}
	}
	f.Value = strings.Join(f.has, ", ")
	if len(f.has) == 0 {
		f.Value = "no " + strings.Join(f.not, ", ")
	}
	if says {
		f.role, f.use, f.about = declared, true, nil
		f.rule = f.rule || c.says == nil || !c.says.MatchString(strings.TrimSpace(s.low))
	}
	return []Fact{f}
}

// stances notes which options a sentence is for, and which it is against, and returns for
// how many it is.
func (c *choice) stances(s *sentence, f *Fact) (n int) {
	if len(s.text) != len(s.low) { // letters that change their length: rather nothing than the wrong place
		return 0
	}
	for _, o := range c.options {
		said := false
		for _, at := range o.word.FindAllStringIndex(s.text, -1) {
			if c.another(s, at[0], at[1]) {
				continue
			}
			switch stance(s.low, at[0], at[1]) {
			case wanted:
				said = true
			case refused:
				f.not = append(f.not, strings.Split(o.name, "/")[0])
			}
		}
		if said {
			n++
			f.has = append(f.has, strings.Split(o.name, "/")...)
		}
	}
	return n
}

// Names that go on: of tools for an option, and of what the makers of a licence make else.
var (
	toolOf = lazyregexp.New(`^ (?:workbench|compass|browser|connector|exporter|shell|syntax|dialect|playground|voyager|assured|documentation|manual)\b`)
	ofName = lazyregexp.New(`^ (?:[A-Z][a-z]|sockets?\b|httpd\b|tar\b)`)
	lawful = lazyregexp.New(`^ (?:Licen[cs]|Version|Software|Public|Clause|Dependenc|Librar|Packages?\b)`)
)

// another reports whether what stands at [from, to) is part of the name of something else.
// Options on both sides of a slash are those options: "MySQL/MariaDB".
func (c *choice) another(s *sentence, from, to int) bool {
	for from < to && strings.IndexByte("/@-.:# (,;", s.low[from]) >= 0 { // an expression may begin before its word
		from++
	}
	low := s.low
	if from > 0 && low[from-1] == '/' && c.beside(s.text[:from-1], true) {
		from = 0
	}
	if to < len(low) && low[to] == '/' && c.beside(s.text[to+1:], false) {
		low = low[:to]
	}
	if to+1 < len(low) && s.text[to+1] != low[to+1] { // "GraphQL-API"
		low = low[:to]
	}
	return glued(low, from, to) || toolOf.MatchString(s.low[to:]) ||
		c.kind == "licence" && ofName.MatchString(s.text[to:]) && !lawful.MatchString(s.text[to:])
}

// beside reports whether a text ends, or begins, with an option.
func (c *choice) beside(text string, end bool) bool {
	return slices.ContainsFunc(c.options, func(o option) bool {
		return slices.ContainsFunc(o.word.FindAllStringIndex(text, -1), func(at []int) bool { return end && at[1] == len(text) || !end && at[0] == 0 })
	})
}

// declared is the role of a fact that says in so many words what there is one of.
const declared = "declared"

// Of a declaration: what stands before the noun and behind it, and what makes it one of some
// case alone.
const (
	leading = `^(?:the |our |its |an? |all )?(?:(?:primary|main|only|new|single|central|production|app|application|service|system|project|product)(?:'s)? )*`
	ofWhat  = `(?: of (?:the|this|our) (?:app|application|service|system|product|project|site|backend))?`
	verb    = ` ?(?::|=|\||–|—| is| are| will be| stays?| becomes?| uses?| happens?| works?| goes| runs on)` +
		`(?: (?:by|an?|the|with|via|through|over|in|on|always|named|written|given|kept|handled|done|provided|managed|using|plain|pure))* `
)

var (
	someCase = lazyregexp.New(`\b(?:in|on|when|if|where|while|during|or|and|plus|via|behind|like|but|unless|except)\b`)
)

// saying is the begin of a sentence that says what a noun is.
func saying(noun string) *lazyregexp.Regexp {
	return lazyregexp.New(leading + `(?:` + noun + `)` + ofWhat + verb)
}

// declares reports whether a sentence says what the kind's noun is, and nothing else: "The
// database is PostgreSQL 16", "Database: PostgreSQL", "Authentication uses JWT"; or stands
// under a heading that is the noun.
func (c *choice) declares(s *sentence) bool {
	low := strings.Join(strings.Fields(s.low), " ")
	for _, said := range []string{low, s.heading + ": " + low} {
		for _, re := range []*lazyregexp.Regexp{c.noun, c.says} {
			if re == nil {
				continue
			}
			at := re.FindStringIndex(said)
			if at == nil {
				continue
			}
			rest := said[at[1]:]
			return rest == "" || !someCase.MatchString(rest) && slices.ContainsFunc(c.options, func(o option) bool { return o.all.MatchString(rest) })
		}
	}
	return false
}

func (c *choice) clash(x, y *Fact, peers bool) bool {
	if both := x.role == declared && y.role == declared; !aligned(x, y) || peers && !both && !c.whole && !meet(x.about, y.about) && !c.everywhere(x, y) {
		return false // what one module does is no rule for another
	}
	if len(x.about) > 0 && len(y.about) > 0 && !meet(x.about, y.about) {
		return false
	}
	if meet(x.not, y.has) && y.use || meet(y.not, x.has) && x.use {
		return true
	}
	if len(x.has) == 0 || len(y.has) == 0 || meet(x.has, y.has) {
		return false
	}
	return x.role == declared && y.role == declared || x.rule && y.use || y.rule && x.use || c.whole && x.use && y.use || meet(x.about, y.about)
}

// everywhere reports whether one of two modules speaks of all of them.
func (c *choice) everywhere(x, y *Fact) bool {
	return c.kind == "licence" || len(x.not) > 0 && x.rule || len(y.not) > 0 && y.rule
}

// New dependencies.
var (
	noDeps = lazyregexp.New(`\bno (?:(?:new|further|additional|extra|more|third[- ]party|external|` +
		`runtime) )*(?:dependenc(?:y|ies)|libraries)\b|` +
		`\b(?:don't|do not|never|must not|avoid) (?:add|adding|introduc\w+|bring\w*(?: in)?) (?:any |a |new |further |` +
		`additional |third[- ]party )*(?:dependenc|librar)|` +
		`\bwithout (?:any |new |further |additional |third[- ]party )+dependenc|\b(?:stdlib|standard library) only\b|` +
		`\bonly the standard library\b|\bzero dependencies\b|` +
		`\bkeine (?:neuen |weiteren )?abhängigkeiten\b|\baucune (?:nouvelle )?dépendance\b|\b(?:sin|` +
		`ninguna) (?:nuevas? )?dependencias?\b`)
	moreNoDeps = lazyregexp.New(`\bno (?:(?:new|further|additional|extra|third[- ]party|external) )+packages\b|` +
		`\b(?:(?:new|further|additional|extra|runtime|third[- ]party|external) )+(?:dependenc(?:y|ies)|libraries|packages) ` +
		`(?:are|is) (?:not (?:allowed|permitted|wanted|accepted)|forbidden|banned)\b|\b(?:dependencies|libraries) (?:must|may|can)(?: ?not|'t) be added\b`)
	stdlib  = lazyregexp.New(`\b(?:stdlib|standard library)\b`)
	modules = lazyregexp.New(`\b(?:uses?|imports?) ((?:github\.com/[\w.-]+|gitlab\.com/[\w.-]+|golang\.org/x|gopkg\.in)/[\w.-]+)(?:$|[\s,;:)])`)
	unless  = lazyregexp.New(`\b(?:unless|except|without (?:asking|approval|discuss\w*|an? \w+)|ask first|if possible|` +
		`where possible|no dependency is|adds no|in tests)\b`)
	newDeps = lazyregexp.New(`\b(?:add|adds|adding|introduces?) the (?:npm |pip |go |python )?package (@[\w/.-]+|[a-z][\w.-]*)\s*(?:[,;]|$|for\b)|` +
		`\b(?:add|adds|adding) ([a-z@][\w@/.-]*)(?:[=<>~]=?\S+)? (?:to (?:requirements\.txt|the dependencies)|as an? (?:new )?dependency)|` +
		`\b(?:add|adds|adding|introduces?|install|pulls? in|brings? in) (?:the |a |an )?(?:new |` +
		`\w+ )?(?:library|dependency)(?: on)? ([\w@/.\x60"'-]+)|` +
		`\b(?:npm (?:install|i)|pnpm add|yarn add|bun add|pip install|poetry add|uv add|cargo add|go get|` +
		`composer require) (?:-\S+ )*([a-z@][\w@/.-]*)|\bnew dependency:? (?:on )?([\w@/.\x60-]+)|` +
		`\bnew (?:dependency|library), ([\w@/.-]+), (?:is|gets|will be) added\b|` +
		`\b(?:füge|nimm) (?:die )?(?:bibliothek|abhängigkeit) ([\w@/.\x60-]+)`)
	foreign = lazyregexp.New(`(?i)\bthird[- ]party (?:dependenc|librar|package)`)
	hosted  = lazyregexp.New(`^(?:(?:github|gitlab)\.com|golang\.org|gopkg\.in)/`)
	devDeps = lazyregexp.New(`\bdev(?:elopment)?[- ]?dependenc|--save-dev|\s-D\b|\s-d\b`)
	byUsers = lazyregexp.New(`\b(?:users?|people|customers|readers|you) (?:can |may |then )?(?:installs?|gets?|runs?|adds?)\b|\s(?:-g|--global)\b`)
)

// clashDependencies finds what is added where nothing may be. A module that is used may be
// there already, but is not of the standard library.
func clashDependencies(x, y *Fact, _ bool) bool {
	rule, use := x, y
	if !rule.rule {
		rule, use = y, x
	}
	a, b := *rule, *use
	if foreign.MatchString(a.Quote) { // whose they are, not whom it is for
		a.aside = without(a.aside, "others")
	}
	if hosted.MatchString(b.Value) { // the host's name stands in it
		b.aside = without(b.aside, "others")
	}
	return rule.rule && use.use && (use.role != "module" || rule.role == "stdlib") && aligned(&a, &b)
}

func readDependencies(s *sentence) []Fact {
	low := strings.Join(strings.Fields(s.low), " ") // where "`" was are two
	if noDeps.MatchString(s.low) || moreNoDeps.MatchString(s.low) {
		if unless.MatchString(s.low) {
			return nil
		}
		f := Fact{Key: "new", Value: "none", rule: true}
		if stdlib.MatchString(s.low) {
			f.role = "stdlib"
		}
		return []Fact{f}
	}
	if m := modules.FindStringSubmatchIndex(s.low); m != nil && stance(s.low, m[0], m[1]) == wanted {
		return []Fact{{Key: "new", Value: s.low[m[2]:m[3]], use: true, role: "module"}}
	}
	m := newDeps.FindStringSubmatchIndex(low)
	if m == nil || devDeps.MatchString(s.low) || byUsers.MatchString(low) || stance(low, m[0], m[1]) != wanted {
		return nil
	}
	for i := 2; i+1 < len(m); i += 2 {
		if m[i] < 0 {
			continue
		}
		name := strings.Trim(low[m[i]:m[i+1]], "`\"'.")
		if name == "" || slices.Contains(strings.Fields("page view screen card item entry section folder directory of for that to and in is between with from by using via only "+
			"when before if as at are was were documentation docs comment comments page name test tests "+
			"json manager version description list file hashes versions lines notes"), name) || strings.HasSuffix(name, ".txt") {
			return nil
		}
		return []Fact{{Key: "new", Value: name, use: true}}
	}
	return nil
}
