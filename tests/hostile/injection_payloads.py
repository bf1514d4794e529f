"""Names and texts that try to be more than text, by what they aim at. All go to every sink."""

from __future__ import annotations

import unicodedata

TERMINAL = (
    "\x1b[31mred", "\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b]8;;http://evil.test\x1b\\click\x1b]8;;\x1b\\",
    "\x1b[1A\x1b[2K", "\x1bc",
    "\x1b[?1049h", "\x1bP$q\x1b\\", "\x1b[6n", "\x1b_G\x1b\\", "\x9b31mC1", "\x9d0;title\x9c", "\x90q\x9c",
    "\x85next", "ok\rFAILED",
    "ok\nerror[V501]: forged", "ok\r\n2026-11-21 forged line", "a\x08\x08\x08b", "a\x7fb", "a\x00b", "tab\there",
    "a\x0bb", "a\x0cb",
    "\u202etxt.exe", "\u202dabc", "\u2066abc\u2069", "\u2028line", "\u2029paragraph", "\u200bzero", "\ufeffmark",
    "\u00adsoft",
    "\U000e0041tag", "\ud800", "\udcff", "\ufffe", "e\u0301", "\u0300", "\ufdfd", "\U0001f469\u200d\U0001f4bb",
)  # fmt: skip
CONTROLS = tuple(
    f"a{character}b"
    for code in (
        *range(0x20),
        *range(0x7F, 0xA0),
        *range(0x200B, 0x2010),
        *range(0x2028, 0x202F),
        *range(0x2060, 0x2070),
    )
    if unicodedata.category(character := chr(code)) in ("Cc", "Cf", "Zl", "Zp", "Cn")
)
HTML = (
    "<script>alert(1)</script>", "<ScRiPt src=//evil.test/x.js></sCrIpT>", "</script><script>alert(1)//",
    "<img src=x onerror=alert(1)>",
    '"><img src=x onerror=alert(1)>', "'><svg onload=alert(1)>", '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "</td></tr></table><h1>x", "</details><details open ontoggle=alert(1)>", "</style><style>*{display:none}",
    "</title><script>1</script>",
    "</svg><script>1</script>", "<svg><animate onbegin=alert(1)>", "<math><mtext></mtext><script>1</script>",
    "<iframe srcdoc='<script>1'>",
    "<meta http-equiv=refresh content='0;url=//evil.test'>", "<base href=//evil.test/>",
    "<link rel=stylesheet href=//evil.test>",
    "<form action=//evil.test><button>", "<object data=//evil.test>", "<embed src=//evil.test>", "<!--", "-->",
    "<!-- --><b>", "<![CDATA[",
    "]]>", "<?php echo 1 ?>", "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;", "&lt;script&gt;",
    "&#60;script&#62;", "&amp;lt;",
    "javascript:alert(1)", "JaVaScRiPt&#58;alert(1)", "data:text/html,<script>1</script>", "{{ 7*7 }}", "{% raw %}",
    "{# x #}", "${7*7}",
    "<%= 7*7 %>", "#{7*7}", "\u2039script\u203a", "\uff1cscript\uff1e", "<a href=javascript:1>x", "<x onclick=1>",
    "<style>@import '//evil'",
    '`"\'<>&', "a=b c=d", "/><b/", "<b", "b>", "<>", "</>", "<table><tr><td>", "a\" style=\"x:expression(1)",
    "<noscript><p title='</noscript>",
)  # fmt: skip
MARKDOWN = (
    "[x](http://evil.test)", "![x](http://evil.test/p.png)", "[x]: http://evil.test", "<http://evil.test>",
    "http://evil.test", "https://evil.test/a_b",
    "www.evil.test", "ftp://evil.test", "a|b", "|", "\\|", "||", "a | b | c | d | e |", "`", "``", "```", "`a`",
    "`` ` ``", "a`|b", "`|`", "~~~",
    "**bold**", "__bold__", "*em*", "_em_", "~~gone~~", "# heading", "===", "---", "- item", "1. item", "> quote",
    "@everyone", "@octocat, look",
    "org/team#1", "#123", "GH-1", "0123456789abcdef0123456789abcdef01234567", "&nbsp;", "&copy;", "\\", "\\\\", "a\\",
    "\\[x](y)", "$$x$$", "$`x`$",
    "<details>", "</details>", "<summary>", "<!-- maintainer:plan -->", "-->x", "[^1]", ":smile:", "- [x] done",
    "mailto:a@evil.test", "a@evil.test",
    "\\`", "` |", "|`", "<code>", "</code>", "`</code>`", "|</code><b>", "[x][y]", "***", "**", "_", "a_b_c",
    "x\n\n# y", "x\n| a | b |",
)  # fmt: skip
SQL = (
    "x; DROP TABLE sentinel", "x`; DROP TABLE sentinel; --", "x``; DROP TABLE sentinel; --", "`", "``", "```", "x`y",
    "x``y", "`x`", "x`.`y", ".`.", "'",
    "''", "\\'", "\\", "\\\\'", "x' OR '1'='1", "x\\' OR 1=1 --", "' OR true --", "') OR (1=1", "1=1) --",
    "1=1) OR (p = '", "/* x */", "x/*", "*/x",
    "--", "-- x", "#", ";", ";;", '"', '""', 'x" OR "1"="1', "x) FULL (", "x) ZORDER BY (y", "x ZORDER BY y",
    "x WHERE 1=1", "x FULL", "x APPLY (PURGE)",
    "reflect('java.lang.System','exit',1)", "java_method('java.lang.Runtime','getRuntime')", "(SELECT 1)",
    "(SELECT max(a) FROM b)", "my_udf(a)",
    "current_user()", "a.b.c.d", "..", "a..b", ".a", "a.", "delta.`/etc`", "delta.`/lake/other`", "parquet.`/x`",
    "system.sales", "x VERSION AS OF 0",
    "x@v1", "x TIMESTAMP AS OF '2020-01-01'", "${env:HOME}", "${system:user.home}", "${hivevar:x}", "${spark.app.id}",
    "${x}", "$${x}", "{x}", ":x", "?",
    "%", "_", "\\%", "\\_", "\\u0027", "\\047", "\\n", "\\0", "\\Z", "r'x'", "x'41'", "N'x'", "0x41", "1e309", "NULL",
    "true", "DATE '2026-01-01'",
    "CAST(1 AS STRING)", "\uff07", "\u2019", "\u02bc", "\u0060\u0301", "IDENTIFIER('x')", "EXECUTE IMMEDIATE 'x'",
    "SET x=1", "a\nb", "a\r--b", "a\x00b`",
)  # fmt: skip
WORKFLOW = (
    "::error::forged", "\n::error file=x.py,line=1::forged", "::set-output name=x::y", "::add-mask::x",
    "::stop-commands::tok", "::debug::x", "%0A::error::x",
    "%0a::warning::x", "%25%0A::error::x", "x,line=1", "x::y", "::", ":", "a%3Ab", "%", "\r::error::x", "##[error]x",
    "##vso[task.setvariable]x", "::group::x", "::endgroup::",
)  # fmt: skip
TABULAR = (
    "=1+1", "=cmd|'/c calc'!A1", "+1+1", "-1+1", "@SUM(1)", "\t=1+1", "\r=1+1", "\n=1+1", " =1+1", '"=1+1"', "a,b",
    'a"b', 'a""b', 'a","=1+1', "a;b",
    "=HYPERLINK(\"http://evil.test\",\"x\")", "=IMPORTXML(CONCAT(1,2))", "\uff1d1+1", "-2+3+cmd|' /C calc'!A0",
    "%0A=1+1", "sep=;",
    'x"} 1\nmaintainer_table_state{table="forged"', 'x",state="ok', "x\\", 'x\\"', "# TYPE x counter", "x} 1", "{",
    "}", 'a"}', "\\n",
)  # fmt: skip
DOCUMENTS = (
    '","x":"y', '\\","x":1', '\\u0022', "{\"a\":1}", "null", "]}", "<testcase name='x'/>", "</testsuite>",
    "]]><failure/>", "&quot;", "&#x0;", "&#27;",
    "\x01\x02", "\x1f", "\ufffe\uffff", "'/><error/>", "../../etc/passwd", "/etc/passwd", "file:///etc/passwd",
    "..\\..\\x", "%2e%2e%2f", "a/../b", "con", "-rf", "--help",
    "$(touch x)", "`touch x`", "; touch x", "| touch x", "&& touch x", "> x", "~", "*", "?", "[a-z]", "{a,b}", "!x",
    "a b", " a", "a ", " ", "x",
)  # fmt: skip

PAYLOADS = tuple(dict.fromkeys((*TERMINAL, *CONTROLS, *HTML, *MARKDOWN, *SQL, *WORKFLOW, *TABULAR, *DOCUMENTS)))
