//! One walk over sqlparser's AST for every visitor.
//!
//! `node.visit(&mut visitor)` is compiled anew, thousands of functions, for each type of visitor. Behind a `dyn` it is
//! compiled once; the calls that this costs are nothing beside parsing.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};

use crate::error::Error;

/// What ends a walk early.
pub type Flow = ControlFlow<Box<Error>>;

/// Shows every node to the visitor.
pub fn walk(node: &impl Visit, visitor: &mut dyn Visitor<Break = Box<Error>>) -> Flow {
    node.visit(&mut Looks(visitor))
}

/// Lets the visitor change every node.
pub fn walk_mut(node: &mut impl VisitMut, visitor: &mut dyn VisitorMut<Break = Box<Error>>) -> Flow {
    node.visit(&mut Changes(visitor))
}

struct Looks<'a>(&'a mut dyn Visitor<Break = Box<Error>>);

impl Visitor for Looks<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, node: &Query) -> Flow {
        self.0.pre_visit_query(node)
    }

    fn post_visit_query(&mut self, node: &Query) -> Flow {
        self.0.post_visit_query(node)
    }

    fn pre_visit_select(&mut self, node: &Select) -> Flow {
        self.0.pre_visit_select(node)
    }

    fn post_visit_select(&mut self, node: &Select) -> Flow {
        self.0.post_visit_select(node)
    }

    fn pre_visit_relation(&mut self, node: &ObjectName) -> Flow {
        self.0.pre_visit_relation(node)
    }

    fn post_visit_relation(&mut self, node: &ObjectName) -> Flow {
        self.0.post_visit_relation(node)
    }

    fn pre_visit_table_factor(&mut self, node: &TableFactor) -> Flow {
        self.0.pre_visit_table_factor(node)
    }

    fn post_visit_table_factor(&mut self, node: &TableFactor) -> Flow {
        self.0.post_visit_table_factor(node)
    }

    fn pre_visit_expr(&mut self, node: &Expr) -> Flow {
        self.0.pre_visit_expr(node)
    }

    fn post_visit_expr(&mut self, node: &Expr) -> Flow {
        self.0.post_visit_expr(node)
    }

    fn pre_visit_statement(&mut self, node: &Statement) -> Flow {
        self.0.pre_visit_statement(node)
    }

    fn post_visit_statement(&mut self, node: &Statement) -> Flow {
        self.0.post_visit_statement(node)
    }

    fn pre_visit_value(&mut self, node: &ValueWithSpan) -> Flow {
        self.0.pre_visit_value(node)
    }

    fn post_visit_value(&mut self, node: &ValueWithSpan) -> Flow {
        self.0.post_visit_value(node)
    }
}

struct Changes<'a>(&'a mut dyn VisitorMut<Break = Box<Error>>);

impl VisitorMut for Changes<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, node: &mut Query) -> Flow {
        self.0.pre_visit_query(node)
    }

    fn post_visit_query(&mut self, node: &mut Query) -> Flow {
        self.0.post_visit_query(node)
    }

    fn pre_visit_select(&mut self, node: &mut Select) -> Flow {
        self.0.pre_visit_select(node)
    }

    fn post_visit_select(&mut self, node: &mut Select) -> Flow {
        self.0.post_visit_select(node)
    }

    fn pre_visit_relation(&mut self, node: &mut ObjectName) -> Flow {
        self.0.pre_visit_relation(node)
    }

    fn post_visit_relation(&mut self, node: &mut ObjectName) -> Flow {
        self.0.post_visit_relation(node)
    }

    fn pre_visit_table_factor(&mut self, node: &mut TableFactor) -> Flow {
        self.0.pre_visit_table_factor(node)
    }

    fn post_visit_table_factor(&mut self, node: &mut TableFactor) -> Flow {
        self.0.post_visit_table_factor(node)
    }

    fn pre_visit_expr(&mut self, node: &mut Expr) -> Flow {
        self.0.pre_visit_expr(node)
    }

    fn post_visit_expr(&mut self, node: &mut Expr) -> Flow {
        self.0.post_visit_expr(node)
    }

    fn pre_visit_statement(&mut self, node: &mut Statement) -> Flow {
        self.0.pre_visit_statement(node)
    }

    fn post_visit_statement(&mut self, node: &mut Statement) -> Flow {
        self.0.post_visit_statement(node)
    }

    fn pre_visit_value(&mut self, node: &mut ValueWithSpan) -> Flow {
        self.0.pre_visit_value(node)
    }

    fn post_visit_value(&mut self, node: &mut ValueWithSpan) -> Flow {
        self.0.post_visit_value(node)
    }
}
