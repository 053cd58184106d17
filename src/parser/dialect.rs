//! The dialect: what sqlparser's lexer and parser take for SQL here.
//!
//! It is DataFusion's default (generic) dialect, so that whatever runs there runs here, less what DataFusion reads and
//! then ignores: a clause that nothing acts on must be a syntax error. It knows none of our own clauses.

use std::any::TypeId;

use sqlparser::ast::Expr;
use sqlparser::dialect::{Dialect, GenericDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

/// The dialect of every statement.
#[derive(Debug)]
pub(super) struct LevadaDialect;

/// Answers `true` to the questions of [`Dialect`] that are listed; the others keep their default, `false`.
macro_rules! supports {
    ($($question:ident),* $(,)?) => { $(fn $question(&self) -> bool { true })* };
}

impl Dialect for LevadaDialect {
    /// sqlparser asks for the type in places that have no question of their own, such as UNNEST in FROM.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        c == '"' || c == '`'
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('"')
    }

    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphabetic() || c.is_ascii_digit() || c == '$' || c == '_'
    }

    /// `a IS DISTINCT FROM b AND c` compares a with b, as in PostgreSQL; sqlparser takes all that follows for the other side.
    fn parse_infix(&self, parser: &mut Parser, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        let not = match () {
            () if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) => false,
            () if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) => true,
            () => return None,
        };
        let left = Box::new(left.clone());
        let right = parser.parse_subexpr(precedence).map(Box::new);
        Some(right.map(|right| match not {
            false => Expr::IsDistinctFrom(left, right),
            true => Expr::IsNotDistinctFrom(left, right),
        }))
    }

    supports!(
        allow_extract_custom,
        allow_extract_single_quotes,
        support_map_literal_syntax,
        supports_array_typedef_with_brackets,
        supports_asc_desc_in_column_definition,
        supports_bitwise_shift_operators,
        supports_comma_separated_trim,
        supports_constraint_keyword_without_name,
        supports_data_type_signed_suffix,
        supports_dictionary_syntax,
        supports_empty_projections,
        supports_extract_comma_syntax,
        supports_filter_during_aggregation,
        supports_from_first_select,
        supports_group_by_expr,
        supports_interval_options,
        supports_left_associative_joins_without_parens,
        supports_limit_comma,
        supports_named_fn_args_with_assignment_operator,
        supports_nested_comments,
        supports_order_by_all,
        supports_parens_around_table_factor,
        supports_pipe_operator,
        supports_select_wildcard_except,
        supports_select_wildcard_exclude,
        supports_select_wildcard_ilike,
        supports_select_wildcard_rename,
        supports_select_wildcard_replace,
        supports_start_transaction_modifier,
        supports_string_escape_constant,
        supports_struct_literal,
        supports_try_convert,
        supports_unicode_string_literal,
        supports_values_as_table_factor,
        supports_window_clause_named_window_reference,
        supports_window_function_null_treatment_arg,
    );
}
